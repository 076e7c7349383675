// SPDX-License-Identifier: Apache-2.0
//
// The choices of a multiple-choice row, in the forms of the well-known benchmarks: `choices` or
// `options` as a list of texts (MMLU), {"text": [..], "label": [..]} (ARC), a list of
// {"label", "text"}, or {"A": text, ..} (MedQA); or a column for each letter (C-Eval).
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::data {

struct Choices {
  std::vector<std::string> columns;  // columns that hold the choices
  std::vector<std::string> labels;   // A, B, ... unless the row names others
  std::vector<std::string> texts;
  bool are_numbers = false;  // some of them, in the row

  // "A. text" on a line each; texts that begin with their labels as they are.
  std::string lines() const;
  // True when `question` shows each text behind its label already.
  bool are_in(std::string_view question) const;
  // The choice that `answer` names: the label of an index from 0, any text as it is. Empty for an
  // index or a letter that names no choice, and for a number that is an index and another choice.
  std::optional<std::string> answer_of(const nlohmann::ordered_json& answer) const;

 private:
  bool begin_with_labels() const;
};

// Empty when the row has no such columns.
std::optional<Choices> choices_of(const nlohmann::ordered_json& row);

}  // namespace convoy::data
