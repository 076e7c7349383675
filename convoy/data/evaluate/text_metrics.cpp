// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/evaluate/text_metrics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/suggest.h"
#include "convoy/data/answers/equivalence.h"
#include "convoy/data/evaluate/rouge.h"
#include "convoy/data/evaluate/sari.h"
#include "convoy/data/evaluate/squad.h"
#include "convoy/data/evaluate/text_match.h"

namespace convoy::evaluate {
namespace {

// The texts of a row as words for a ROUGE metric, computed at first use.
class RowWords {
 public:
  RowWords(const ScoredAnswer& sample, RougeWords kind) : sample_(sample), kind_(kind) {}

  const std::vector<int32_t>& pred() {
    if (!has_words_) make_words();
    return pred_;
  }
  const std::vector<std::vector<int32_t>>& refs() {
    if (!has_words_) make_words();
    return refs_;
  }
  std::vector<std::vector<int32_t>> lines(const std::string& text) {
    std::vector<std::vector<int32_t>> lines;
    for (const std::string_view line : lines_of(text)) lines.push_back(numbers_of(line));
    return lines;
  }

 private:
  std::vector<int32_t> numbers_of(std::string_view text) {
    return numbers_.of(rouge_words(text, kind_));
  }
  void make_words() {
    has_words_ = true;
    pred_ = numbers_of(sample_.pred);
    for (const std::string& ref : sample_.refs) refs_.push_back(numbers_of(ref));
  }

  const ScoredAnswer& sample_;
  RougeWords kind_;
  WordNumbers numbers_;
  bool has_words_ = false;
  std::vector<int32_t> pred_;
  std::vector<std::vector<int32_t>> refs_;
};

struct Row {
  Row(const ScoredAnswer& of, const JsonSchema* with)
      : sample(of),
        schema(with),
        words{RowWords(of, RougeWords::Plain), RowWords(of, RougeWords::Stemmed),
              RowWords(of, RougeWords::Unicode)} {}

  const ScoredAnswer& sample;
  const JsonSchema* schema;  // or null
  std::array<RowWords, 3> words;
};

RowWords& words_of(Row& row, RougeWords kind) { return row.words[static_cast<size_t>(kind)]; }

template <class Score>
double best_of(const Row& row, Score score) {
  double best = 0;
  for (const std::string& ref : row.sample.refs)
    best = std::max(best, static_cast<double>(score(row.sample.pred, ref)));
  return best;
}

template <size_t n, RougeWords kind>
double rouge_n_of(Row& row) {
  RowWords& words = words_of(row, kind);
  double best = 0;
  for (const auto& ref : words.refs()) best = std::max(best, rouge_n(ref, words.pred(), n));
  return best;
}

template <RougeWords kind>
double rouge_l_of(Row& row) {
  RowWords& words = words_of(row, kind);
  double best = 0;
  for (const auto& ref : words.refs()) best = std::max(best, rouge_l(ref, words.pred()));
  return best;
}

template <RougeWords kind>
double rouge_l_sum_of(Row& row) {
  RowWords& words = words_of(row, kind);
  const auto pred = words.lines(row.sample.pred);
  double best = 0;
  for (const std::string& ref : row.sample.refs)
    best = std::max(best, rouge_l_sum(words.lines(ref), pred));
  return best;
}

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

bool is_blank(const std::string& text) {
  return text.find_first_not_of(" \t\r\n") == std::string::npos;
}

// evaluate's SARI gives a prediction without words a high score, for its deletions and absent
// additions.
double sari_of(Row& row) {
  if (!row.sample.input) return kNothing;
  const std::vector<std::string>& refs = row.sample.refs;
  if (is_blank(row.sample.pred) && std::none_of(refs.begin(), refs.end(), is_blank)) return 0;
  return 100 * sari(*row.sample.input, row.sample.pred, row.sample.refs);
}

double schema_compliance_of(Row& row) {
  if (row.schema == nullptr) return kNothing;
  return row.schema->accepts_text(row.sample.pred) ? 1 : 0;
}

// Prose is not parsed as a formula.
bool is_same_answer(std::string_view pred, const std::string& ref) {
  return marks_answer(ref) ? answers::check_answer(ref, pred) == answers::Verdict::Yes
                           : exact_match(pred, ref);
}

using ScoreFunction = double (*)(Row& row);
struct Metric {
  std::string_view name;
  ScoreFunction score;
};

constexpr auto kPlain = RougeWords::Plain;
constexpr auto kStemmed = RougeWords::Stemmed;

constexpr std::array kMetrics = {
    Metric{"rouge1", rouge_n_of<1, kPlain>},
    Metric{"rouge1_stem", rouge_n_of<1, kStemmed>},
    Metric{"rouge2", rouge_n_of<2, kPlain>},
    Metric{"rouge2_stem", rouge_n_of<2, kStemmed>},
    Metric{"rougeL", rouge_l_of<kPlain>},
    Metric{"rougeL_stem", rouge_l_of<kStemmed>},
    Metric{"rougeLsum", rouge_l_sum_of<kPlain>},
    Metric{"rougeLsum_stem", rouge_l_sum_of<kStemmed>},
    Metric{"rougeL_unicode", rouge_l_of<RougeWords::Unicode>},
    Metric{"sari", sari_of},
    Metric{"exact_match", [](Row& row) { return best_of(row, exact_match); }},
    Metric{"exact_match_squad", [](Row& row) { return best_of(row, squad_match); }},
    Metric{"token_f1", [](Row& row) { return best_of(row, squad_f1); }},
    Metric{"numeric_match", [](Row& row) { return best_of(row, numeric_match); }},
    Metric{"answer_match", [](Row& row) { return best_of(row, is_same_answer); }},
    Metric{"schema_compliance", schema_compliance_of},
};

constexpr const auto& kFacts = settings::kTextMetrics;
static_assert(kMetrics.size() == kFacts.size(),
              "core/settings/text_metric_list.h and this table hold the same metrics");

// By the index of a metric in kFacts; a name without a function is a compile error.
constexpr std::array<ScoreFunction, kFacts.size()> kScores = [] {
  std::array<ScoreFunction, kFacts.size()> scores{};
  for (size_t at = 0; at < scores.size(); ++at)
    scores[at] = std::find_if(kMetrics.begin(), kMetrics.end(), [&](const Metric& metric) {
                   return metric.name == kFacts[at].name;
                 })->score;
  return scores;
}();

size_t number_of(std::string_view name) {
  const auto found = std::find_if(kFacts.begin(), kFacts.end(),
                                  [&](const MetricFacts& facts) { return facts.name == name; });
  return static_cast<size_t>(found - kFacts.begin());
}

void check_names(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (number_of(name) < kFacts.size()) continue;
    std::vector<std::string> known;
    for (const MetricFacts& facts : kFacts) known.emplace_back(facts.name);
    throw ConfigError(
        fmt::format("`{}` is no metric; wanted some of {}", name, fmt::join(known, ", ")),
        {.key = "metrics", .hint = did_you_mean(name, known)});
  }
}

}  // namespace

bool marks_answer(const std::string& reference) {
  return reference.find("####") != std::string::npos ||
         reference.find("\\boxed") != std::string::npos;
}

double most_of_metric(std::string_view name) {
  const size_t number = number_of(name);
  return number < kFacts.size() ? kFacts[number].most : 1;
}

TextMetrics::TextMetrics(std::vector<std::string> names, const std::string& schema_file)
    : names_(std::move(names)) {
  check_names(names_);
  if (names_.empty())
    for (const MetricFacts& facts : kFacts) names_.emplace_back(facts.name);
  for (const std::string& name : names_) numbers_.push_back(number_of(name));
  if (!schema_file.empty()) schema_ = JsonSchema::load(schema_file);
}

RowScores TextMetrics::score(const ScoredAnswer& sample) const {
  CONVOY_INVARIANT(!sample.refs.empty(), "a sample has no reference");
  Row row(sample, schema_ ? &*schema_ : nullptr);
  RowScores scores{
      .values = {},
      .names_answer = std::any_of(sample.refs.begin(), sample.refs.end(), marks_answer)};
  for (const size_t number : numbers_) scores.values.push_back(kScores[number](row));
  return scores;
}

MetricMeans::MetricMeans(const TextMetrics& metrics)
    : metrics_(metrics), sums_(metrics.names().size()) {}

void MetricMeans::add(const RowScores& scores) {
  for (size_t metric = 0; metric < sums_.size(); ++metric)
    sums_[metric] += scores.values.at(metric);
  has_answers_ = has_answers_ || scores.names_answer;
  ++count_;
}

std::optional<double> MetricMeans::mean(size_t metric) const {
  if (count_ == 0 || std::isnan(sums_.at(metric))) return std::nullopt;
  if (kFacts[metrics_.numbers_[metric]].needs_answers && !has_answers_) return std::nullopt;
  return sums_[metric] / static_cast<double>(count_);
}

nlohmann::json MetricMeans::json() const {
  nlohmann::json figures = {{"count", count_}};
  for (size_t metric = 0; metric < sums_.size(); ++metric) {
    const std::optional<double> value = mean(metric);
    figures[metrics_.names()[metric]] = value ? nlohmann::json(*value) : nlohmann::json();
  }
  return figures;
}

}  // namespace convoy::evaluate
