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
  std::vector<std::string> labels;   // A, B, ... unless the row has its own labels
  std::vector<std::string> texts;
  bool are_numbers = false;  // true: at least one choice is a number in the row

  // The choices as text, one "A. text" per line. Texts that contain their labels are not changed.
  std::string lines() const;
  // True when `question` shows each choice with its label already.
  bool are_in(std::string_view question) const;
  // The choice that `answer` names: for an index from 0 the label; for a text the text itself.
  // Empty for an index or a letter without a choice, and for an answer of two readings.
  std::optional<std::string> answer_of(const nlohmann::ordered_json& answer) const;
  // Both readings of an answer that is the text of one choice and the index of another; else empty.
  std::string two_readings_of(const nlohmann::ordered_json& answer) const;

 private:
  bool begin_with_labels() const;
};

// The choices of a row; empty when the row has no such columns.
std::optional<Choices> choices_of(const nlohmann::ordered_json& row);

}  // namespace convoy::data
