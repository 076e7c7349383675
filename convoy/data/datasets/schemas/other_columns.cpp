// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/schemas/other_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "convoy/core/base/lower_case.h"

namespace convoy::data {
namespace {

using Json = nlohmann::ordered_json;
using Words = std::vector<std::string>;

// Words in column names that stand for a side. The other words of the name may only mean an answer,
// as in `chosen_response`.
constexpr auto kBetter =
    std::to_array<std::string_view>({"chosen", "preferred", "accepted", "accept", "positive", "pos",
                                     "better", "best", "winner", "winning", "win", "good", "w"});
constexpr auto kWorse = std::to_array<std::string_view>(
    {"rejected", "reject", "dispreferred", "unpreferred", "nonpreferred", "unchosen", "negative",
     "neg", "worse", "worst", "loser", "losing", "lose", "bad", "l"});
constexpr auto kNot = std::to_array<std::string_view>({"non", "not", "un", "less", "dis"});
constexpr auto kAnswerWords = std::to_array<std::string_view>(
    {"response", "responses", "answer", "text", "completion", "output", "message", "messages",
     "conversation", "turns", "content", "sample", "y"});
// Endings of two answer columns that do not say which answer is better.
constexpr auto kNeutral = std::to_array<std::pair<std::string_view, std::string_view>>(
    {{"a", "b"}, {"0", "1"}, {"1", "2"}, {"left", "right"}, {"first", "second"}});
// Columns of Stack Exchange's pairs: response_j is the better answer.
constexpr std::string_view kBetterOfStackExchange = "response_j";
constexpr std::string_view kWorseOfStackExchange = "response_k";

constexpr auto kLabels = std::to_array<std::string_view>(
    {"labels",    "is_good",    "good",         "is_desirable", "desirable",
     "is_chosen", "chosen",     "is_preferred", "preferred",    "is_accepted",
     "accepted",  "is_correct", "correct",      "thumbs_up",    "thumbs",
     "feedback",  "verdict",    "kto_label",    "is_positive",  "vote"});

enum class Side { None, Better, Worse };

template <class List>
bool is_one_of_words(const List& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_digit_of_name(char letter) { return letter >= '0' && letter <= '9'; }

// The words of a name: "chosen_response", "chosenResponse" and "Chosen-Response" give the same
// words, and so do "answer1" and "answer_1".
Words words_of_name(std::string_view name) {
  Words words(1);
  char before = '_';
  for (const char letter : name) {
    const bool is_mark = letter == '_' || letter == '-' || letter == '.' || letter == ' ';
    const bool is_capital = lower_case(letter) != letter && lower_case(before) == before;
    const bool is_number = is_digit_of_name(letter) && !is_digit_of_name(before);
    const bool begins_word = is_mark || is_capital || is_number;
    if (begins_word && !words.back().empty()) words.emplace_back();
    if (!is_mark) words.back() += lower_case(letter);
    before = letter;
  }
  return words;
}

Side side_named(std::string_view name) {
  if (name == kBetterOfStackExchange) return Side::Better;
  if (name == kWorseOfStackExchange) return Side::Worse;
  Side side = Side::None;
  bool is_turned = false;
  for (const std::string& word : words_of_name(name)) {
    const bool better = is_one_of_words(kBetter, word);
    if (better || is_one_of_words(kWorse, word)) {
      if (side != Side::None) return Side::None;
      side = better ? Side::Better : Side::Worse;
    } else if (is_one_of_words(kNot, word)) {
      is_turned = !is_turned;
    } else if (!is_one_of_words(kAnswerWords, word)) {
      return Side::None;
    }
  }
  if (side == Side::None || !is_turned) return side;
  return side == Side::Better ? Side::Worse : Side::Better;
}

bool may_be_answer(const Json& value) { return value.is_string() || value.is_structured(); }

std::string column_of(const Json& row, Side side) {
  for (const auto& [name, value] : row.items())
    if (name != "chosen" && name != "rejected" && may_be_answer(value) && side_named(name) == side)
      return name;
  return {};
}

bool is_named(const Json& row, std::string_view column) {
  const auto found = row.find(column);
  return found != row.end() && !found->is_null();
}

// The two answer columns whose names do not say which is better, such as `response_a` and
// `response_b`; empty names when there are none.
std::pair<std::string, std::string> neutral_columns(const Json& row) {
  for (const auto& [first, first_value] : row.items()) {
    const Words words = words_of_name(first);
    const bool is_answer = words.size() > 1 && is_one_of_words(kAnswerWords, words.front());
    if (!is_answer || !may_be_answer(first_value)) continue;
    for (const auto& [one, other] : kNeutral) {
      if (words.back() != one) continue;
      Words partner = words;
      partner.back() = other;
      for (const auto& [second, second_value] : row.items())
        if (may_be_answer(second_value) && words_of_name(second) == partner) return {first, second};
    }
  }
  return {};
}

// True for OpenAI's form of the prompt: an object `input` with `messages`.
bool has_input_of_messages(const Json& row) {
  const auto input = row.find("input");
  return input != row.end() && input->is_object() && input->contains("messages");
}

}  // namespace

std::string side_hint(const Json& row) {
  if (!row.is_object()) return {};
  std::string renamed;
  for (const auto& [ours, side] :
       {std::pair{"chosen", Side::Better}, std::pair{"rejected", Side::Worse}}) {
    const std::string theirs = is_named(row, ours) ? std::string() : column_of(row, side);
    if (theirs.empty()) continue;
    renamed += fmt::format("{}`{}` to `{}`", renamed.empty() ? "rename " : " and ", theirs, ours);
  }
  if (!renamed.empty())
    return renamed + (has_input_of_messages(row)
                          ? ", and write the list `messages` of `input` as the column `prompt`"
                          : "");
  if (is_named(row, "chosen") || is_named(row, "rejected")) return {};
  const auto [one, other] = neutral_columns(row);
  if (one.empty()) return {};
  return fmt::format(
      "write the better one of `{}` and `{}` as `chosen`, and the other one as `rejected`", one,
      other);
}

bool has_both_sides(const Json& row) {
  return row.is_object() && !is_named(row, "chosen") && !is_named(row, "rejected") &&
         !column_of(row, Side::Better).empty() && !column_of(row, Side::Worse).empty();
}

std::string label_hint(const Json& row) {
  if (!row.is_object()) return {};
  for (const auto& [name, value] : row.items())
    if (!value.is_structured() && is_one_of_words(kLabels, lower_case(name)))
      return fmt::format("rename `{}` to `label`", name);
  return {};
}

}  // namespace convoy::data
