// SPDX-License-Identifier: Apache-2.0
//
// Units of measure and counted nouns behind a number: "cm", "m/s^2", "mol^{-1}", "square feet",
// "厘米", "км/ч", "dollars", "apples".
#pragma once

#include <array>
#include <cstdint>
#include <map>
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
  std::map<std::string, int> others = {};  // units that nothing converts, with their exponents
  bool known = false;                      // false: a noun, which says nothing about the value

  bool is_dimension(const std::array<int8_t, 5>& of, const std::string& other, int power) const {
    return powers == of && others == std::map<std::string, int>{{other, power}};
  }
  bool same_dimension(const MeasureUnit& unit) const {
    return powers == unit.powers && others == unit.others;
  }
};

// The unit with the name `word`: singular or plural, a symbol with a prefix of the SI, Chinese or
// Russian.
std::optional<MeasureUnit> unit_named(std::string_view word);

// True for "p", "n", "m", "k", "M", "G" before another symbol: "k" and "Omega" are one unit.
bool is_prefix(std::string_view word);

// Products and powers of units. Empty where the numbers grow too large.
std::optional<MeasureUnit> raised(const MeasureUnit& unit, int power);
std::optional<MeasureUnit> multiplied(const MeasureUnit& a, const MeasureUnit& b);

// True for a currency that precedes the number, as a word or a sign: "Rs 50", "USD 5".
bool is_currency(std::string_view word);

// Reads the unit or noun at `at`, which moves behind it. Empty when there is none.
std::optional<MeasureUnit> read_unit(std::span<const Token> tokens, size_t& at);

}  // namespace convoy::answers
