// SPDX-License-Identifier: Apache-2.0
//
// Whether generated answers equal their references. An empty prediction scores 0; it is never
// dropped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::evaluate {

struct Sample {
  std::string input;
  std::string pred;
  std::string ref;
};

// Equal after trimming white space on both sides.
bool exact_match(std::string_view pred, std::string_view ref);

// The final number of an answer: the last one after the last "####", else the last in the text.
// Thousands separators, a leading '$' and a trailing '.' do not count; the result is a plain
// decimal without superfluous zeros.
std::optional<std::string> final_number(std::string_view text);

// Both have a final number and it is the same.
bool numeric_match(std::string_view pred, std::string_view ref);

struct TextFigures {
  int64_t count = 0;
  double exact_match = 0;                 // share, 0..1
  std::optional<double> numeric_match{};  // share; empty when no reference has a "####" answer
};

TextFigures score_samples(const std::vector<Sample>& samples);

}  // namespace convoy::evaluate
