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
  // Exponents of the base units metre, gram, second, cent and degree.
  std::array<int8_t, 5> powers = {};
  // One unit equals above / below base units: a minute is 60 / 1 seconds.
  int64_t above = 1;
  int64_t below = 1;
  std::map<std::string, int> others = {};  // exponents of units without a conversion, by name
  bool known = false;                      // false: a noun, which does not change the value

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

// True for a prefix that may be a token of its own before a symbol: "p", "n", "m", "k", "M", "G".
// The tokens "k" and "Omega" are one unit.
bool is_prefix(std::string_view word);

// The power of a unit, and the product of two units. Empty when the numbers grow too large.
std::optional<MeasureUnit> raised(const MeasureUnit& unit, int power);
std::optional<MeasureUnit> multiplied(const MeasureUnit& a, const MeasureUnit& b);

// True for a currency that stands before the number, as a word or a sign: "Rs 50", "USD 5".
bool is_currency(std::string_view word);

// Reads the unit or noun that begins at `at`, and moves `at` behind it. Empty when there is none.
std::optional<MeasureUnit> read_unit(std::span<const Token> tokens, size_t& at);

}  // namespace convoy::answers
