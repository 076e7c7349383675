// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/schemas/ranked_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/suggest.h"
#include "convoy/core/base/text_as.h"
#include "convoy/core/base/trimmed.h"
#include "convoy/data/datasets/schemas/nested_column.h"
#include "convoy/data/datasets/schemas/plain_turns.h"

namespace convoy::data {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::pair<RankedPairs, std::string_view>, 4> kWays = {{
    {RankedPairs::BestVsWorst, "best_vs_worst"},
    {RankedPairs::BestVsRest, "best_vs_rest"},
    {RankedPairs::Adjacent, "adjacent"},
    {RankedPairs::All, "all"},
}};

// Columns with a list of answers, and members of an entry that hold the answer's text.
constexpr std::array kLists = {"completions", "responses", "answers", "candidates", "generations"};
constexpr std::array kAnswerMembers = {"response", "answer",  "completion",
                                       "text",     "content", "output"};

// Names of ranks (the smallest is best) and of scores (the largest is best).
constexpr std::array kRanks = {"rank", "ranks", "ranking", "rankings"};
constexpr std::array kScores = {"overall_score", "score",  "scores",  "rating",
                                "ratings",       "reward", "rewards", "pm_score"};

enum class Null { Absent, Present };

template <class Words>
const char* first_of(const Words& words, const Json& value, Null null = Null::Absent) {
  for (const char* word : words)
    if (const auto found = value.find(word);
        found != value.end() && (!found->is_null() || null == Null::Present))
      return word;
  return nullptr;
}

bool has_sides(const Json& row) {
  return row.is_object() && first_of(std::array{"chosen", "rejected"}, row) != nullptr;
}

// Names the columns of a row that hold its answers and their ranks or scores.
struct RankedForm {
  const char* list = nullptr;    // column with the list
  const char* values = nullptr;  // column beside the list, or member of its entries
  bool beside = false;
  bool is_rank = false;
};

Json list_in(const Json& row, const char* column) {
  return as_list_of_structs(decoded_column(row.at(column)));
}

std::optional<RankedForm> form_of(const Json& row) {
  if (!row.is_object() || has_sides(row)) return {};
  RankedForm form{.list = first_of(kLists, row)};
  if (form.list == nullptr) return {};
  const Json entries = list_in(row, form.list);
  if (!entries.is_array() || entries.empty()) return {};
  const auto values_in = [&](const Json& value, bool beside, Null null) {
    const char* const rank = first_of(kRanks, value, null);
    form.values = rank != nullptr ? rank : first_of(kScores, value, null);
    form.is_rank = rank != nullptr;
    form.beside = beside;
    return form.values != nullptr;
  };
  // First searches an entry with a value, because the first answer may lack one; then accepts null.
  for (const Null null : {Null::Absent, Null::Present})
    for (const Json& entry : entries)
      if (entry.is_object() && first_of(kAnswerMembers, entry) != nullptr &&
          values_in(entry, false, null))
        return form;
  if (values_in(row, true, Null::Absent) && decoded_column(row.at(form.values)).is_array())
    return form;
  return {};
}

[[noreturn]] void fail_ranked(const Row& row, const std::string& reason, std::string hint) {
  throw DataError(fmt::format("row {}: {}", row.index + 1, reason),
                  {.file = row.file, .line = row.line, .hint = std::move(hint)});
}

// True for a missing value. pandas writes NaN for it in a list of a Parquet file.
bool is_missing(const Json& value) {
  return value.is_null() || (value.is_number_float() && std::isnan(value.get<double>()));
}

// The value as a number; not finite when it is none. Tables may hold numbers as texts.
double number_in(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (value.is_string())
    if (const auto number = text_as<double>(trimmed(value.get_ref<const std::string&>(), " ")))
      return *number;
  return std::nan("");
}

// The value as a number, where a higher number is better; empty when it is missing.
std::optional<double> worth_of(const Row& row, const RankedForm& form, const Json& value) {
  if (is_missing(value)) return std::nullopt;
  const double number = number_in(value);
  if (!std::isfinite(number))
    fail_ranked(row,
                fmt::format("`{}` should have numbers, found {}", form.values,
                            value.is_number() ? fmt::to_string(number) : value.dump()),
                "write null for an answer without one: it is then left out");
  return form.is_rank ? -number : number;
}

struct RankedAnswer {
  Json answer;        // a text, a message, or a list of messages
  std::string place;  // place in the list, such as "responses[2]"
  double worth = 0;
};

RankedAnswer answer_in(const Row& row, const RankedForm& form, size_t place, const Json& entry) {
  RankedAnswer found{.answer = entry, .place = fmt::format("{}[{}]", form.list, place)};
  if (entry.is_object() && !entry.contains("role") && !entry.contains("from")) {
    const char* const key = first_of(kAnswerMembers, entry);
    if (key == nullptr)
      fail_ranked(row, fmt::format("`{}` has no answer", found.place),
                  fmt::format("name it as one of {}", fmt::join(kAnswerMembers, ", ")));
    found.answer = entry.at(key);
    found.place += fmt::format(".{}", key);
  }
  if (found.answer.is_number_integer()) found.answer = found.answer.dump();  // text, as in columns
  if (found.answer.is_string() || found.answer.is_structured()) return found;
  fail_ranked(row,
              fmt::format("wanted a text or a list of messages at `{}`, found {}", found.place,
                          found.answer.dump()),
              found.answer.is_null() ? "write null as its score too: it is then left out"
                                     : "write it in quotes, as the model is to read it");
}

std::vector<RankedAnswer> answers_of(const Row& row, const RankedForm& form, RankedCounts& counts) {
  const Json entries = list_in(row.value, form.list);
  const Json values = form.beside ? decoded_column(row.value.at(form.values)) : Json();
  if (form.beside && values.size() != entries.size())
    fail_ranked(
        row,
        fmt::format("`{}` has {} and `{}` {}", form.list,
                    counted(std::ssize(entries), "entry", "entries"), form.values, values.size()),
        "write one value for each answer");
  std::vector<RankedAnswer> answers;
  for (size_t place = 0; place < entries.size(); ++place) {
    const Json& entry = entries[place];
    if (!form.beside && !entry.is_object())
      fail_ranked(row,
                  fmt::format("`{}` has objects with `{}`, and an entry that is none", form.list,
                              form.values),
                  "write each answer as an object of the same members");
    const Json value = form.beside ? values[place] : entry.value(form.values, Json());
    if (const auto worth = worth_of(row, form, value)) {
      answers.push_back(answer_in(row, form, place, entry));
      answers.back().worth = *worth;
    } else {
      ++counts.unranked;
    }
  }
  return answers;
}

// The numbers under one of `words`, one for each entry of the list, with their name; the entries
// are searched before the columns. Not finite where an entry has none; empty without such a name.
template <class Words>
std::pair<std::string, std::vector<double>> numbers_under(const Words& words, const Row& row,
                                                          const RankedForm& form) {
  const Json entries = list_in(row.value, form.list);
  std::vector<double> numbers;
  for (const Json& first : entries) {
    const char* const member = first.is_object() ? first_of(words, first) : nullptr;
    if (member == nullptr) continue;
    for (const Json& entry : entries)
      numbers.push_back(entry.is_object() ? number_in(entry.value(member, Json())) : std::nan(""));
    return {member, numbers};
  }
  const char* const column = first_of(words, row.value);
  if (column == nullptr) return {};
  const Json values = decoded_column(row.value.at(column));
  if (!values.is_array() || values.size() != entries.size()) return {};
  for (const Json& value : values) numbers.push_back(number_in(value));
  return {column, numbers};
}

// Refuses a row in which a better rank has a lower score: which answer is the chosen one would
// depend on what is read.
void refuse_contradiction(const Row& row, const RankedForm& form) {
  const auto [rank, ranks] = numbers_under(kRanks, row, form);
  const auto [score, scores] = numbers_under(kScores, row, form);
  if (ranks.empty() || scores.empty()) return;
  for (size_t better = 0; better < ranks.size(); ++better)
    for (size_t worse = 0; worse < ranks.size(); ++worse)
      if (ranks[better] < ranks[worse] && scores[better] < scores[worse])
        fail_ranked(row,
                    fmt::format("`{}` and `{}` contradict each other: `{}[{}]` has the better "
                                "rank, `{}[{}]` the better score",
                                rank, score, form.list, better, form.list, worse),
                    "rank 1 is the best, and the highest score; leave out the one that is wrong");
}

using Places = std::vector<std::pair<size_t, size_t>>;

// Sorts the best answer first; equal answers keep the order of the list.
void sort_best_first(std::vector<RankedAnswer>& answers) {
  std::stable_sort(answers.begin(), answers.end(),
                   [](const auto& left, const auto& right) { return left.worth > right.worth; });
}

// The pairs to make, as indices into the sorted list, the better answer first.
Places places_of(const std::vector<RankedAnswer>& sorted, RankedPairs which) {
  const size_t count = sorted.size();
  Places places;
  for (size_t better = 0; better + 1 < count; ++better)
    for (size_t worse = better + 1; worse < count; ++worse) {
      const bool is_wanted = which == RankedPairs::All ||
                             (which == RankedPairs::Adjacent && worse == better + 1) ||
                             (which == RankedPairs::BestVsRest && better == 0);
      if (is_wanted) places.emplace_back(better, worse);
    }
  if (which != RankedPairs::BestVsWorst || count < 2) return places;
  // The first of the worst answers whose text differs from the best answer's.
  const auto worst = std::find_if(sorted.begin() + 1, sorted.end(), [&](const auto& answer) {
    return answer.worth == sorted.back().worth && answer.answer != sorted.front().answer;
  });
  return {{0, worst == sorted.end() ? count - 1 : static_cast<size_t>(worst - sorted.begin())}};
}

Json as_turns(const Json& text, const char* role) {
  return text.is_string() ? Json::array({{{"role", role}, {"content", text}}}) : text;
}

// The columns of the row without the answers. If the answers are messages, a prompt that is a text
// becomes a message too.
Json beside_answers(const Row& row, const RankedForm& form, bool answers_are_texts) {
  Json columns = row.value;
  columns.erase(form.list);
  if (form.beside) columns.erase(form.values);
  if (answers_are_texts) return columns;
  const char* column = first_of(std::array{"prompt"}, columns);
  if (column == nullptr) column = first_of(kQuestionColumns, columns);
  if (column == nullptr || !columns.at(column).is_string()) return columns;
  const Json turns = as_turns(columns.at(column), "user");
  columns.erase(column);
  columns["prompt"] = turns;
  return columns;
}

bool has_prompt_of_messages(const Json& columns) {
  const auto is_list = [&](const char* column) {
    return columns.contains(column) && decoded_column(columns.at(column)).is_structured();
  };
  return is_list("prompt") || is_list("messages") || is_list("conversations");
}

class RankedSource final : public RowSource {
 public:
  RankedSource(std::unique_ptr<RowSource> rows, RankedPairs which, BadRows bad_rows,
               std::shared_ptr<RankedCounts> counts)
      : rows_(std::move(rows)), which_(which), bad_rows_(bad_rows), counts_(std::move(counts)) {}

  std::optional<Row> next() override {
    std::optional<RawRow> raw = next_raw();
    if (!raw) return std::nullopt;
    return parse_row(std::move(*raw), bad_rows_);
  }

  std::optional<RawRow> next_raw() override {
    own_row_is_lost_ = false;
    while (ready_.empty()) {
      std::optional<RawRow> raw = next_of_file();
      if (!raw || is_plain_) return raw;
      const std::optional<Row> row = parsed(*raw);
      if (!row) return numbered(std::move(*raw));
      if (!is_ranked_) {
        is_ranked_ = is_ranked_row(row->value);
        is_plain_ = !is_ranked_ && has_sides(row->value);
        if (is_plain_) return raw;
        if (!is_ranked_) return numbered(std::move(*raw));  // a bad row decides nothing
      }
      take_pairs(*row);
    }
    RawRow pair{.row = std::move(ready_.front()), .text = {}};
    ready_.pop_front();
    return numbered(std::move(pair));
  }

  bool row_is_lost() const override { return own_row_is_lost_ || rows_->row_is_lost(); }
  std::string lost_row() const override { return own_row_is_lost_ ? "" : rows_->lost_row(); }

 private:
  std::optional<RawRow> next_of_file() {
    try {
      return rows_->next_raw();
    } catch (const DataError&) {
      if (rows_->row_is_lost()) ++index_;
      throw;
    }
  }

  // The parsed row; empty when it cannot be parsed. The code that parses it again reports its
  // fault.
  std::optional<Row> parsed(const RawRow& raw) const {
    try {
      return parse_row(raw, bad_rows_);
    } catch (const DataError&) {
      return std::nullopt;
    }
  }

  RawRow numbered(RawRow raw) {
    raw.row.index = index_++;
    return raw;
  }

  void take_pairs(const Row& row) {
    try {
      for (Row& pair : pairs_of_ranked_row(row, which_, *counts_))
        ready_.push_back(std::move(pair));
    } catch (const DataError&) {
      own_row_is_lost_ = true;
      ++index_;
      throw;
    }
    if (!ready_.empty()) ready_.front().characters_replaced = row.characters_replaced;
  }

  std::unique_ptr<RowSource> rows_;
  RankedPairs which_;
  BadRows bad_rows_;
  std::shared_ptr<RankedCounts> counts_;
  bool is_plain_ = false;
  bool is_ranked_ = false;
  bool own_row_is_lost_ = false;
  std::deque<Row> ready_;
  int64_t index_ = 0;  // index of the next returned row; unreadable rows count
};

}  // namespace

RankedPairs ranked_pairs_named(std::string_view name) {
  std::vector<std::string> words;
  for (const auto& [which, word] : kWays) {
    if (word == name) return which;
    words.emplace_back(word);
  }
  throw ConfigError(fmt::format("`{}` is no way to pair ranked answers{}; known: {}", name,
                                did_you_mean(name, words), fmt::join(words, ", ")),
                    {.key = "data.ranked_pairs", .hint = "choose one of them, or leave it out"});
}

std::string_view ranked_pairs_name(RankedPairs which) {
  return kWays[static_cast<size_t>(which)].second;
}

bool is_ranked_row(const Json& row) { return form_of(row).has_value(); }

std::string RankedCounts::sentence(RankedPairs which) const {
  if (lists == 0) return {};
  std::string text =
      fmt::format("{} {} ({})", counted(lists, "ranked list makes", "ranked lists make"),
                  counted(pairs, "pair"), ranked_pairs_name(which));
  if (without_pair > 0)
    text += fmt::format("; {} no two answers of different rank",
                        counted(without_pair, "list has", "lists have"));
  if (ties > 0) text += fmt::format("; {} of one rank or answer left out", counted(ties, "pair"));
  if (unranked > 0)
    text += fmt::format("; {} without a rank left out", counted(unranked, "answer"));
  return text;
}

std::vector<Row> pairs_of_ranked_row(const Row& row, RankedPairs which, RankedCounts& counts) {
  const std::optional<RankedForm> form = form_of(row.value);
  if (!form)
    fail_ranked(
        row, "wanted a list of answers with their scores or ranks",
        "such as responses and scores, or answers of {answer, rank}; split the file by schema");
  refuse_contradiction(row, *form);
  std::vector<RankedAnswer> answers = answers_of(row, *form, counts);
  sort_best_first(answers);
  const bool are_texts = std::all_of(answers.begin(), answers.end(),
                                     [](const auto& answer) { return answer.answer.is_string(); });
  const Json columns = beside_answers(row, *form, are_texts);
  const bool turns = !are_texts || has_prompt_of_messages(columns);
  const char* const fact = form->is_rank ? "rank" : "score";
  const auto side = [&](const Json& answer) {
    return turns ? as_turns(answer, "assistant") : answer;
  };
  const auto value = [&](double worth) { return form->is_rank ? -worth : worth; };
  std::vector<Row> pairs;
  for (const auto& [better, worse] : places_of(answers, which)) {
    if (answers[better].worth == answers[worse].worth ||
        answers[better].answer == answers[worse].answer) {
      ++counts.ties;
      continue;
    }
    Json pair = columns;
    pair["chosen"] = side(answers[better].answer);
    pair["rejected"] = side(answers[worse].answer);
    pair[fmt::format("{}_chosen", fact)] = value(answers[better].worth);
    pair[fmt::format("{}_rejected", fact)] = value(answers[worse].worth);
    pairs.push_back({.value = std::move(pair),
                     .file = row.file,
                     .line = row.line,
                     .chosen_from = answers[better].place,
                     .rejected_from = answers[worse].place});
  }
  ++counts.lists;
  counts.pairs += std::ssize(pairs);
  counts.without_pair += pairs.empty();
  return pairs;
}

std::unique_ptr<RowSource> with_ranked_pairs(std::unique_ptr<RowSource> rows, RankedPairs which,
                                             BadRows bad_rows,
                                             std::shared_ptr<RankedCounts> counts) {
  return std::make_unique<RankedSource>(std::move(rows), which, bad_rows, std::move(counts));
}

}  // namespace convoy::data
