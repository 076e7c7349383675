// SPDX-License-Identifier: Apache-2.0
//
// Units of measure and counted nouns behind a number: "cm", "m/s^2", "square feet", "dollars",
// "apples".
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "convoy/data/answers/tokens.h"

namespace convoy::answers {

struct MeasureUnit {
  // Exponents of metre, gram, second, cent, degree.
  std::array<int8_t, 5> powers = {};
  // One of the unit is above / below base units.
  int64_t above = 1;
  int64_t below = 1;
  std::string other = {};  // units that nothing converts: "yuan", "C"
  bool known = false;      // false: a noun, which says nothing about the value
  bool same_dimension(const MeasureUnit& unit) const {
    return powers == unit.powers && other == unit.other;
  }
};

// The unit with the name `word`, singular or plural.
std::optional<MeasureUnit> unit_named(std::string_view word);

// True for a currency that precedes the number, as a word or a sign: "Rs 50", "USD 5".
bool is_currency(std::string_view word);

// Reads the unit or noun at `at`, which moves behind it. Empty when there is none.
std::optional<MeasureUnit> read_unit(std::span<const Token> tokens, size_t& at);

}  // namespace convoy::answers
