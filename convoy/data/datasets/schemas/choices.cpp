// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/schemas/choices.h"

#include <fmt/format.h>

#include <algorithm>

#include "convoy/core/base/text_as.h"
#include "convoy/data/datasets/schemas/nested_column.h"

namespace convoy::data {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostLetters = 26;
// Longer names are names of settings, not labels of choices.
constexpr size_t kMostLabelBytes = 3;

std::optional<std::string> choice_text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number()) return value.dump();
  return std::nullopt;
}

// Appends a choice. Returns false when label or text is not usable.
bool add(Choices& choices, const Json& label, const Json& text) {
  const auto label_text = choice_text_of(label);
  const auto choice_text = choice_text_of(text);
  if (!label_text || !choice_text) return false;
  choices.labels.push_back(*label_text);
  choices.texts.push_back(*choice_text);
  choices.are_numbers |= text.is_number();
  return true;
}

bool read_list(const Json& list, Choices& choices) {
  if (list.size() > kMostLetters) return false;
  for (size_t index = 0; index < list.size(); ++index) {
    const Json& item = list[index];
    const bool is_read = item.is_object()
                             ? add(choices, item.value("label", Json()), item.value("text", Json()))
                             : add(choices, std::string(1, static_cast<char>('A' + index)), item);
    if (!is_read) return false;
  }
  return true;
}

bool read_members(const Json& members, Choices& choices) {
  for (const auto& [label, text] : members.items())
    if (!text.is_null() && (label.size() > kMostLabelBytes || !add(choices, label, text)))
      return false;
  return true;
}

std::optional<Choices> read_column(const Json& row, const char* column) {
  const auto found = row.find(column);
  if (found == row.end()) return std::nullopt;
  const Json value = as_list_of_structs(decoded_column(*found));
  Choices choices;
  choices.columns = {column};
  const bool is_read = value.is_array()    ? read_list(value, choices)
                       : value.is_object() ? read_members(value, choices)
                                           : false;
  if (!is_read || choices.texts.size() < 2) return std::nullopt;
  return choices;
}

std::optional<Choices> read_letters(const Json& row) {
  Choices choices;
  for (size_t index = 0; index < kMostLetters; ++index) {
    std::string letter(1, static_cast<char>('A' + index));
    const auto found = row.find(letter);
    if (found == row.end() || is_absent(*found) || !add(choices, letter, *found)) break;
    choices.columns.push_back(std::move(letter));
  }
  if (choices.texts.size() < 2) return std::nullopt;
  return choices;
}

std::optional<size_t> place_in(const std::vector<std::string>& texts, std::string_view text) {
  const auto found = std::find(texts.begin(), texts.end(), text);
  if (found == texts.end()) return std::nullopt;
  return static_cast<size_t>(found - texts.begin());
}

}  // namespace

std::string Choices::lines() const {
  std::string lines;
  const bool are_labelled = begin_with_labels();
  for (size_t index = 0; index < texts.size(); ++index) {
    if (index > 0) lines += "\n";
    if (!are_labelled) lines += labels[index] + ". ";
    lines += texts[index];
  }
  return lines;
}

// True when the texts contain their labels, as in AQuA: "A)21".
bool Choices::begin_with_labels() const {
  for (size_t index = 0; index < texts.size(); ++index) {
    const std::string& label = labels[index];
    const std::string& text = texts[index];
    const bool is_marked =
        text.starts_with(label) && text.find_first_of(").:", label.size()) == label.size();
    if (!is_marked && !text.starts_with("(" + label + ")")) return false;
  }
  return true;
}

bool Choices::are_in(std::string_view question) const {
  for (size_t index = 0; index < texts.size(); ++index) {
    const auto shows = [&](const char* mark) {
      return question.find(fmt::format("{}{} {}", labels[index], mark, texts[index])) !=
             std::string_view::npos;
    };
    if (!shows(".") && !shows(")") && !shows(":")) return false;
  }
  return true;
}

// Beside choices that are texts, a number is an index, as in MMLU.
std::string Choices::two_readings_of(const Json& answer) const {
  const auto said = choice_text_of(answer);
  if (!said || place_in(labels, *said) || (answer.is_number() && !are_numbers)) return {};
  const auto named = place_in(texts, *said);
  const auto index = text_as<size_t>(*said);
  if (!named || !index || *index >= texts.size() || *named == *index) return {};
  return fmt::format("the text of choice {}, and the index from 0 of choice {}", labels[*named],
                     labels[*index]);
}

std::optional<std::string> Choices::answer_of(const Json& answer) const {
  const auto said = choice_text_of(answer);
  if (!said || !two_readings_of(answer).empty()) return std::nullopt;
  if (place_in(labels, *said)) return said;
  const auto named = place_in(texts, *said);
  const auto index = text_as<size_t>(*said);
  const bool is_letter = said->size() == 1 && (*said)[0] >= 'A' && (*said)[0] <= 'Z';
  if (is_letter && !named) return std::nullopt;
  if (!index) return answer.is_string() ? said : std::nullopt;
  if (answer.is_string() && (named || *index >= texts.size())) return said;
  if (*index >= texts.size()) return std::nullopt;
  return labels[*index];
}

std::optional<Choices> choices_of(const Json& row) {
  if (!row.is_object()) return std::nullopt;
  if (auto choices = read_column(row, "choices")) return choices;
  if (auto options = read_column(row, "options")) return options;
  return read_letters(row);
}

}  // namespace convoy::data
