// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/evaluate/text_metrics.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/suggest.h"
#include "convoy/data/evaluate/metric_row.h"

namespace convoy::evaluate {
namespace {

constexpr const auto& kFacts = settings::kTextMetrics;
constexpr size_t kCount = std::size(kFacts);

// The functions of the metrics, in the order of kFacts.
constexpr double (*kScores[])(MetricRow& row) = {
#define CONVOY_TEXT_METRIC(name, ...) metrics::name,
#include "convoy/core/settings/text_metrics.inl"
#undef CONVOY_TEXT_METRIC
};

size_t number_of(std::string_view name) {
  const auto found = std::find_if(std::begin(kFacts), std::end(kFacts),
                                  [&](const MetricFacts& facts) { return facts.name == name; });
  return static_cast<size_t>(found - std::begin(kFacts));
}

void check_names(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (number_of(name) < kCount) continue;
    std::vector<std::string> known;
    for (const MetricFacts& facts : kFacts) known.emplace_back(facts.name);
    throw ConfigError(fmt::format("`{}` is no metric{}; wanted some of {}", name,
                                  did_you_mean(name, known), fmt::join(known, ", ")),
                      {.key = "metrics", .hint = "leave --metrics out for all of them"});
  }
}

}  // namespace

bool marks_answer(const std::string& reference) {
  return reference.find("####") != std::string::npos ||
         reference.find("\\boxed") != std::string::npos;
}

double most_of_metric(std::string_view name) {
  const size_t number = number_of(name);
  return number < kCount ? kFacts[number].most : 1;
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
  MetricRow row(sample, schema_ ? &*schema_ : nullptr);
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
