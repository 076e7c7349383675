// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/schemas/unpaired_sample.h"

#include <algorithm>
#include <utility>

#include "convoy/data/datasets/schemas/preference_sample.h"

namespace convoy::data {
namespace {

bool is_one_of(const nlohmann::ordered_json& value, std::initializer_list<const char*> words) {
  return value.is_string() &&
         std::any_of(words.begin(), words.end(), [&](const char* word) { return value == word; });
}

}  // namespace

const char* judgement_column(const nlohmann::ordered_json& row) {
  if (!row.is_object()) return nullptr;
  for (const char* const column : kJudgementColumns)
    if (const auto found = row.find(column); found != row.end() && !found->is_null()) return column;
  return nullptr;
}

std::optional<bool> judgement_of(const nlohmann::ordered_json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (is_one_of(value, {"true", "True", "TRUE"})) return true;
  if (is_one_of(value, {"false", "False", "FALSE"})) return false;
  return std::nullopt;
}

std::optional<bool> judgement_or_number_of(const nlohmann::ordered_json& value) {
  if (const auto found = judgement_of(value)) return found;
  for (const int number : {0, 1})
    if ((value.is_number() && value == number) || is_one_of(value, {number == 0 ? "0" : "1"}))
      return number == 1;
  return std::nullopt;
}

bool judgement(const RowFields& fields) {
  std::optional<bool> judged;
  for (const char* const column : kJudgementColumns) {
    if (fields.peek(column) == nullptr) continue;
    const nlohmann::ordered_json& value = fields.member(column);
    const auto found = judgement_or_number_of(value);
    if (!found)
      fields.fail(
          fmt::format("`{}` is {}, wanted true or false", column, value.dump()),
          "true, 1 and \"true\" call the answer a good one; false, 0 and \"false\" a bad one");
    if (judged.value_or(*found) != *found)
      fields.fail(fmt::format("`{}` and `{}` contradict each other", kJudgementColumns[0], column),
                  "keep the one that is right");
    judged = found;
  }
  CONVOY_INVARIANT(judged, "a row without a column that judges its answer");
  return *judged;
}

Sample unpaired_sample(const RowFields& fields, Sample answer) {
  using Kind = Sample::Kind;
  if (answer.kind == Kind::Text)
    fields.fail("a text has no prompt", "write it as `prompt` and `completion`");
  const char* const list = fields.peek("messages") != nullptr ? "messages" : "conversations";
  const char* const column = answer.kind == Kind::Chat ? list : "completion";
  if (answer.kind == Kind::Chat) {
    auto& turns = answer.messages;
    const auto behind = std::find_if(turns.rbegin(), turns.rend(), is_of_prompt).base();
    if (behind == turns.begin())
      fields.fail("the conversation has no turn of the user", "put the question before the answer");
    answer.completion_messages = nlohmann::ordered_json(behind, turns.end());
    turns.erase(behind, turns.end());
    answer.kind = Kind::ChatPromptCompletion;
  }
  if (answer.kind == Kind::ChatPromptCompletion) {
    require_turns_of_assistant(fields, column, answer.completion_messages);
    require_questions(fields, answer.messages);
  }
  if (answer.kind == Kind::PromptCompletion && answer.prompt.empty())
    fields.fail("the prompt is empty, so the first token of the answer would not be judged",
                "write the question, or leave the row out");
  answer.is_judged = true;
  return answer;
}

}  // namespace convoy::data
