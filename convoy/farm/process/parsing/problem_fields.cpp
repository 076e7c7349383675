// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/parsing/problem_fields.h"

#include <array>
#include <string_view>
#include <utility>

#include "convoy/core/base/error.h"

namespace convoy::process {
namespace {

using Json = nlohmann::ordered_json;

// Keys in the order of the search.
constexpr std::array kProblemKeys = {"problem", "Problem", "body", "question", "prompt"};
constexpr std::array kSolutionKeys = {"solution", "rationale", "Rationale"};
constexpr std::array kAnswerKeys = {"answer", "correct", "final_answer"};
constexpr const char* kChoicesKey = "options";
constexpr std::string_view kWhitespace = " \t\r\n";

std::vector<std::string> keys_of(const Json& row) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : row.items()) keys.push_back(key);
  return keys;
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(kWhitespace) == std::string_view::npos;
}

// Null counts as absent.
const Json* present(const Json& row, const std::string& key) {
  const auto found = row.find(key);
  return found == row.end() || found->is_null() ? nullptr : &*found;
}

template <class Keys>
std::string first_present(const Json& row, const Keys& keys) {
  for (const char* const key : keys)
    if (present(row, key) != nullptr) return key;
  return {};
}

// Throws DataError with `hint` for a value that is no text.
std::optional<std::string> text_at(const Json& row, const std::string& key,
                                   const std::string& hint) {
  const Json* const value = key.empty() ? nullptr : present(row, key);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  if (value->is_number()) return value->dump();
  throw DataError(
      fmt::format("`{}`: wanted text, found a value of type {}", key, value->type_name()),
      {.key = key, .hint = hint});
}

std::optional<std::string> plain_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number() || value.is_boolean()) return value.dump();
  return std::nullopt;
}

// A list holds alternatives. Entries that are no text, number or boolean are left out.
std::vector<std::string> alternatives_at(const Json& row, const std::string& key) {
  const Json* const value = key.empty() ? nullptr : present(row, key);
  std::vector<std::string> texts;
  if (value == nullptr) return texts;
  for (const Json& item : value->is_array() ? *value : Json::array({*value}))
    if (std::optional<std::string> text = plain_text(item); text && !is_blank(*text))
      texts.push_back(std::move(*text));
  return texts;
}

// The choices: a list as "A)21\nB)21.5", a text unchanged.
std::string choices_at(const Json& row, const std::string& key) {
  const Json* const value = key.empty() ? nullptr : present(row, key);
  if (value == nullptr) return {};
  if (value->is_string()) return value->get<std::string>();
  std::string lines;
  if (value->is_array())
    for (const Json& choice : *value)
      if (choice.is_string()) lines += (lines.empty() ? "" : "\n") + choice.get<std::string>();
  return lines;
}

std::optional<std::string> content_of(const Json& messages, std::string_view role, bool last,
                                      const std::string& hint) {
  std::optional<std::string> content;
  if (!messages.is_array()) return content;
  for (const Json& message : messages) {
    if (!message.is_object() || text_at(message, "role", hint) != role) continue;
    if (last || !content) content = text_at(message, "content", hint);
  }
  return content;
}

[[noreturn]] void refuse_without_problem(const Json& row, const std::string& section) {
  std::string keys;
  for (const std::string& key : keys_of(row))
    keys += fmt::format("{}`{}`", keys.empty() ? "" : ", ", key);
  throw DataError(
      fmt::format("the row has no problem; its keys are {}", keys.empty() ? "none" : keys),
      {.hint = fmt::format("name its field with {}",
                           section.empty() ? "--problem-field" : section + ".problem_field")});
}

bool means_no_answer(const std::string& answer) {
  return answer == "proof" || answer == "notfound";
}

}  // namespace

ProblemFields::ProblemFields(const data::KnownDataset* known, FieldNames names)
    : known_(known), names_(std::move(names)) {}

std::string ProblemFields::flags() const {
  if (names_.section.empty()) return "--problem-field, --solution-field or --answer-field";
  return fmt::format("{0}.problem_field or {0}.answer_field", names_.section);
}

RowFields ProblemFields::read(const Json& row) const {
  if (!row.is_object())
    throw DataError(
        fmt::format("wanted an object as row, found a value of type {}", row.type_name()),
        {.hint = "give rows that are JSON objects, or a table"});
  // The catalog's entry describes the rows on the hub. Other files may have the same name.
  const bool is_known = known_ != nullptr && present(row, known_->problem_fields[0]) != nullptr;
  std::vector<std::string> problem_keys = {names_.problem};
  if (names_.problem.empty()) {
    problem_keys = {first_present(row, kProblemKeys)};
    if (problem_keys[0] == "body") problem_keys.emplace_back("question");
    if (is_known) problem_keys.assign(known_->problem_fields.begin(), known_->problem_fields.end());
  }
  const auto chosen = [&](const std::string& named, const char* of_known, const auto& keys) {
    if (!named.empty()) return named;
    return is_known ? std::string(of_known) : first_present(row, keys);
  };
  const std::string solution_key =
      chosen(names_.solution, is_known ? known_->solution_field : "", kSolutionKeys);
  const std::string answer_key =
      chosen(names_.answer, is_known ? known_->answer_field : "", kAnswerKeys);
  const std::string choices_key = is_known ? known_->choices_field : kChoicesKey;

  RowFields fields;
  const std::string hint = "name another column with " + flags();
  for (const std::string& key : problem_keys)
    if (const auto text = text_at(row, key, hint); text && !is_blank(*text))
      fields.problem += (fields.problem.empty() ? "" : " ") + *text;
  if (std::vector<std::string> solutions = alternatives_at(row, solution_key); !solutions.empty())
    fields.solution = std::move(solutions.front());
  fields.answers = alternatives_at(row, answer_key);
  if (const Json* const messages = present(row, "messages")) {
    if (fields.problem.empty() && names_.problem.empty())
      fields.problem = content_of(*messages, "user", false, hint).value_or("");
    if (!fields.solution && names_.solution.empty())
      fields.solution = content_of(*messages, "assistant", true, hint);
  }
  if (is_blank(fields.problem)) refuse_without_problem(row, names_.section);
  if (const std::string choices = choices_at(row, choices_key); !choices.empty())
    fields.problem += "\nOptions:\n" + choices;
  if (fields.answers.size() == 1 && names_.answer.empty() && !fields.solution &&
      fields.answers[0].find("####") != std::string::npos)
    fields.solution = std::exchange(fields.answers, {})[0];
  std::erase_if(fields.answers, means_no_answer);
  if (fields.solution && is_blank(*fields.solution)) fields.solution.reset();
  return fields;
}

}  // namespace convoy::process
