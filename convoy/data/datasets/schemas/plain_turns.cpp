// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/schemas/plain_turns.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "convoy/data/datasets/schemas/choices.h"
#include "convoy/data/datasets/schemas/nested_column.h"

namespace convoy::data {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 7> kUserKeys = {
    "user", "question", "prompt", "input", "instruction", "query", "question_stem"};
constexpr std::array<std::string_view, 5> kAssistantKeys = {"assistant", "answer", "response",
                                                            "target", "output"};
// Columns that name the correct choice, if no other column is the answer.
constexpr std::array<std::string_view, 4> kChosenKeys = {"answerKey", "answer_index", "answer_idx",
                                                         "label"};
// Columns with the text that a question refers to (Dolly, SQuAD; BoolQ; RACE).
constexpr std::array<std::string_view, 3> kContextKeys = {"context", "passage", "article"};
constexpr std::array<std::string_view, 3> kReasoningKeys = {"reasoning_content", "reasoning",
                                                            "thinking"};
// Column of SQuAD's answers, {"text": [..]}, or of xLAM's calls, [{"name", "arguments"}, ..].
constexpr std::string_view kAnswers = "answers";

std::vector<std::string> present(const Json& row, std::span<const std::string_view> keys) {
  std::vector<std::string> found;
  for (const std::string_view key : keys)
    if (const auto member = row.find(key); member != row.end() && !member->is_null())
      found.emplace_back(key);
  return found;
}

bool is_pair_list(const Json& value) {
  return value.is_array() && value.size() == 2 && value[0].is_string() && value[1].is_object();
}

// The text of a context column: a string, or a list of strings, joined by line breaks. Empty for
// anything else.
std::string context_of(const Json* column) {
  if (column == nullptr || column->empty()) return {};
  if (column->is_string()) return column->get<std::string>();
  std::string lines;
  if (!column->is_array()) return {};
  for (const Json& line : *column) {
    if (!line.is_string()) return {};
    lines += (lines.empty() ? "" : "\n") + line.get<std::string>();
  }
  return lines;
}

bool has_text(const Json* column) {
  return column != nullptr && column->is_string() && *column != "";
}

Json plain_turn(std::string_view role, std::string content) {
  return {{"role", role}, {"content", std::move(content)}};
}

// The text of SQuAD's answers; nothing for another form. For a question without an answer (SQuAD 2)
// the text is empty.
std::optional<std::string> text_of_answers(const Json& answers) {
  if (answers.is_object()) {
    const auto texts = answers.find("text");
    if (texts == answers.end() || !texts->is_array()) return std::nullopt;
    if (texts->empty()) return "";
    if (texts->front().is_string()) return texts->front().get<std::string>();
    return std::nullopt;
  }
  const bool is_list = answers.is_array() && !answers.empty() && answers[0].is_object();
  if (!is_list || !answers[0].value("text", Json()).is_string()) return std::nullopt;
  return answers[0]["text"].get<std::string>();
}

// xLAM's calls in OpenAI's form; null when the value holds no calls.
Json calls_of_answers(const Json& answers) {
  Json calls = Json::array();
  if (!answers.is_array()) return nullptr;
  for (const Json& answer : answers) {
    if (!answer.is_object() || !answer.value("name", Json()).is_string() ||
        !answer.contains("arguments"))
      return nullptr;
    calls.push_back({{"type", "function"},
                     {"function", {{"name", answer["name"]}, {"arguments", answer["arguments"]}}}});
  }
  return calls.empty() ? Json() : calls;
}

bool are_answers(const Json& row) {
  const auto found = row.find(kAnswers);
  if (found == row.end()) return false;
  const Json answers = decoded_column(*found);
  return text_of_answers(answers) || !calls_of_answers(answers).is_null();
}

std::vector<std::string> question_keys(const Json& row) {
  std::vector<std::string> found = present(row, kUserKeys);
  // Alpaca rows have one question in the columns `instruction` and `input`.
  const auto is_in = [&](const char* key) {
    return std::find(found.begin(), found.end(), key) != found.end();
  };
  if (is_in("instruction") && is_in("input")) std::erase(found, "input");
  return found;
}

// The only key of `found`; throws DataError when there is none or more than one.
std::string only_key(const RowFields& fields, const std::vector<std::string>& found,
                     std::span<const std::string_view> known, std::string_view what) {
  if (found.size() == 1) return found[0];
  if (found.empty())
    fields.fail(fmt::format("wanted the {} under one of {}", what, fmt::join(known, ", ")));
  fields.fail(fmt::format("ambiguous row: {} could each be the {}", fmt::join(found, ", "), what),
              "rename the others, or force another data.schema");
}

// Puts the context above a question, but below an instruction, as alpaca rows do with their input.
std::string with_context(RowFields& fields, std::string_view user, std::string question) {
  std::vector<std::string_view> contexts;
  for (const std::string_view key : kContextKeys)
    if (!context_of(fields.peek(key)).empty()) contexts.push_back(key);
  if (contexts.size() != 1) return question;
  fields.mark_read(contexts[0]);
  const std::string context = fields.cut(context_of(fields.peek(contexts[0])));
  if (question.find(context) != std::string::npos) return question;
  return user == "instruction" ? question + "\n" + context : context + "\n" + question;
}

std::string question_text(RowFields& fields, std::string_view user, const Choices* choices) {
  const bool has_input = user == "instruction" && has_text(fields.peek("input"));
  std::string question = user == "instruction" ? instruction_text(fields) : fields.text(user);
  if (choices != nullptr) {
    for (const std::string& column : choices->columns) fields.mark_read(column);
    if (!choices->are_in(question)) question += "\n" + fields.cut(choices->lines());
  }
  return has_input ? question : with_context(fields, user, std::move(question));
}

Json answer_turn(RowFields& fields, std::string_view assistant, const Choices* choices) {
  if (assistant == kAnswers) {
    const Json answers = decoded_column(fields.member(kAnswers));
    if (auto text = text_of_answers(answers)) return plain_turn("assistant", fields.cut(*text));
    Json message = plain_turn("assistant", "");
    message["tool_calls"] = calls_of_answers(answers);
    return message;
  }
  if (choices == nullptr) return plain_turn("assistant", fields.text(assistant));
  const Json& answer = fields.member(assistant);
  if (const std::string both = choices->two_readings_of(answer); !both.empty())
    fields.fail(fmt::format("`{}` is {}: {}", assistant, answer.dump(), both),
                "write the letter of the choice");
  const auto said = choices->answer_of(answer);
  if (!said)
    fields.fail(fmt::format("`{}` is {}, which names none of the {} choices", assistant,
                            answer.dump(), choices->texts.size()),
                "write the label or the text of the choice");
  return plain_turn("assistant", fields.cut(*said));
}

void add_reasoning(RowFields& fields, Json& answer) {
  for (const std::string_view key : kReasoningKeys) {
    if (!has_text(fields.peek(key))) continue;
    // Templates read the reasoning under this key.
    answer[key == "reasoning" ? "reasoning_content" : std::string(key)] = fields.text(key);
    return;
  }
}

}  // namespace

std::vector<std::string> answer_keys(const Json& row) {
  if (!row.is_object()) return {};
  std::vector<std::string> found = present(row, kAssistantKeys);
  if (found.empty() && are_answers(row)) found.emplace_back(kAnswers);
  if (found.empty() && choices_of(row)) {
    found = present(row, kChosenKeys);
    found.resize(std::min<size_t>(found.size(), 1));
  }
  return found;
}

bool has_question_and_answer(const Json& row) {
  if (row.is_array()) return is_pair_list(row) && !present(row[1], kAssistantKeys).empty();
  return row.is_object() && !present(row, kUserKeys).empty() && !answer_keys(row).empty();
}

std::string instruction_text(RowFields& fields) {
  const std::string instruction = fields.text("instruction");
  const std::string input = fields.text_or_empty("input");
  return input.empty() ? instruction : instruction + "\n" + input;
}

Json plain_turns(RowFields& fields, std::string_view user, std::string_view assistant) {
  const std::optional<Choices> choices = choices_of(fields.value());
  const Choices* const given = choices ? &*choices : nullptr;
  Json turns = fields.history();
  turns.push_back(plain_turn("user", question_text(fields, user, given)));
  turns.push_back(answer_turn(fields, assistant, given));
  add_reasoning(fields, turns.back());
  fields.add_system_column(turns);
  return turns;
}

Json loose_turns(RowFields& fields) {
  const Json& row = fields.value();
  if (row.is_object())
    return plain_turns(fields, only_key(fields, question_keys(row), kUserKeys, "user's text"),
                       only_key(fields, answer_keys(row), kAssistantKeys, "assistant's text"));
  if (!is_pair_list(row)) fields.fail("wanted [\"question\", {\"answer\": ...}]");
  RowFields answer = fields.nested(row[1]);
  Json turns = Json::array({plain_turn("user", fields.cut(row[0].get<std::string>()))});
  turns.push_back(
      plain_turn("assistant", answer.text(only_key(answer, present(row[1], kAssistantKeys),
                                                   kAssistantKeys, "assistant's text"))));
  fields.absorb(answer);
  return turns;
}

}  // namespace convoy::data
