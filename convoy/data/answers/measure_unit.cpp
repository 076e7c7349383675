// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/answers/measure_unit.h"

#include <algorithm>

#include "convoy/data/answers/letters.h"

namespace convoy::answers {
namespace {

struct UnitEntry {
  std::string_view names;  // between spaces; a plural "s" is understood
  std::array<int8_t, 5> powers;
  int64_t above;
  int64_t below;
};

constexpr std::array<int8_t, 5> kLength = {1, 0, 0, 0, 0};
constexpr std::array<int8_t, 5> kVolume = {3, 0, 0, 0, 0};
constexpr std::array<int8_t, 5> kMass = {0, 1, 0, 0, 0};
constexpr std::array<int8_t, 5> kTime = {0, 0, 1, 0, 0};
constexpr std::array<int8_t, 5> kSpeed = {1, 0, -1, 0, 0};
constexpr std::array<int8_t, 5> kMoney = {0, 0, 0, 1, 0};
constexpr std::array<int8_t, 5> kAngle = {0, 0, 0, 0, 1};

constexpr UnitEntry kUnits[] = {
    {" m meter metre ", kLength, 1, 1},
    {" cm centimeter centimetre ", kLength, 1, 100},
    {" mm millimeter millimetre ", kLength, 1, 1000},
    {" dm decimeter decimetre ", kLength, 1, 10},
    {" km kilometer kilometre ", kLength, 1000, 1},
    {" inch inches ", kLength, 254, 10000},
    {" ft foot feet ", kLength, 3048, 10000},
    {" yd yard ", kLength, 9144, 10000},
    {" mi mile ", kLength, 1609344, 1000},
    {" g gm gram gramme ", kMass, 1, 1},
    {" kg kilogram ", kMass, 1000, 1},
    {" mg milligram ", kMass, 1, 1000},
    {" lb pound ", kMass, 45359237, 100000},
    {" oz ounce ", kMass, 45359237, 1600000},
    {" s sec second ", kTime, 1, 1},
    {" ms millisecond ", kTime, 1, 1000},
    {" min minute ", kTime, 60, 1},
    {" h hr hour ", kTime, 3600, 1},
    {" day ", kTime, 86400, 1},
    {" week ", kTime, 604800, 1},
    {" l liter litre ", kVolume, 1, 1000},
    {" ml milliliter millilitre cc ", kVolume, 1, 1000000},
    {" mph ", kSpeed, 1609344, 3600000},
    {" kmph kmh kph ", kSpeed, 1000, 3600},
    {" mps ", kSpeed, 1, 1},
    {" dollar buck usd ", kMoney, 100, 1},
    {" cent penny pennies ", kMoney, 1, 1},
    {" degree deg ", kAngle, 1, 1},
};

// Each is a dimension of its own.
constexpr std::string_view kOther =
    " sterling yuan rupee rs euro eur rmb yen ruble rouble peso franc shekel radian rad year yr "
    "month "
    "gallon "
    "gal quart pint cup acre hectare ton tonne newton joule watt volt ampere ohm pascal hertz hz "
    "kelvin mole n j w v k c f pa ";

bool listed(std::string_view names, std::string_view word) {
  for (size_t at = names.find(word); at != std::string_view::npos; at = names.find(word, at + 1))
    if (names[at - 1] == ' ' && names[at + word.size()] == ' ') return true;
  return false;
}

std::optional<MeasureUnit> listed_unit(std::string_view word) {
  for (const UnitEntry& entry : kUnits)
    if (listed(entry.names, word))
      return MeasureUnit{entry.powers, entry.above, entry.below, "", true};
  if (listed(kOther, word)) return MeasureUnit{{}, 1, 1, std::string(word), true};
  return std::nullopt;
}

bool is_word(const Token& token) {
  // 5 min and 5 sec are times, min(5, 6) and sec x are functions.
  if (token.type == TokenType::Function)
    return token.text == "min" || (token.text == "sec" && token.from_text);
  return token.type == TokenType::Word || token.type == TokenType::Letter;
}

// A run of letters that names counted things: "12 apples", "12 \text{ apples}".
bool is_noun(const Token& token) {
  static constexpr std::string_view kOrdinals = " st nd rd th ";
  if (token.type != TokenType::Word) return false;
  const std::string low = lowered(token.text);
  if (listed(" to million thousand billion trillion hundred dozen and or where for if when union "
             "am pm ",
             low))
    return false;
  return token.from_text || listed(kOrdinals, low) || (token.space_before && low.size() >= 3);
}

// A letter alone is a unit only when it is upright or separated: "5 m", not "5m".
bool may_be_unit(const Token& token) {
  if (token.type == TokenType::Letter) return token.from_text || token.space_before;
  return token.type != TokenType::Sign;
}

void raise(MeasureUnit& unit, int power) {
  const int64_t above = unit.above;
  const int64_t below = unit.below;
  const std::array<int8_t, 5> powers = unit.powers;
  for (int count = 1; count < power; ++count) {
    for (size_t index = 0; index < powers.size(); ++index)
      unit.powers[index] = static_cast<int8_t>(unit.powers[index] + powers[index]);
    unit.above *= above;
    unit.below *= below;
  }
  if (!unit.other.empty() && power > 1) unit.other += "^" + std::to_string(power);
}

bool is(std::span<const Token> tokens, size_t at, std::string_view text) {
  return at < tokens.size() && tokens[at].text == text;
}

// "^2", "^{2}", "squared", or the LaTeX form of one of them.
int read_power(std::span<const Token> tokens, size_t& at) {
  for (const int power : {2, 3}) {
    const std::string digit = std::to_string(power);
    if (is(tokens, at, "^" + digit) || is(tokens, at, power == 2 ? "squared" : "cubed")) {
      at += 1;
      return power;
    }
    if (is(tokens, at, "^") && is(tokens, at + 1, digit)) {
      at += 2;
      return power;
    }
    if (is(tokens, at, "^") && is(tokens, at + 1, "{") && is(tokens, at + 2, digit) &&
        is(tokens, at + 3, "}")) {
      at += 4;
      return power;
    }
  }
  return 1;
}

std::optional<MeasureUnit> read_one(std::span<const Token> tokens, size_t& at,
                                    bool below_line = false) {
  size_t next = at;
  int power = 1;
  if (next < tokens.size() && tokens[next].type == TokenType::Word) {
    const std::string low = lowered(tokens[next].text);
    if (low == "square" || low == "sq") power = 2;
    if (low == "cubic" || low == "cu") power = 3;
    if (power > 1) ++next;
  }
  // "sq. ft": the point belongs to the abbreviation.
  if (power > 1 && is(tokens, next, ".")) ++next;
  if (next >= tokens.size() || !is_word(tokens[next]) || !(below_line || may_be_unit(tokens[next])))
    return std::nullopt;
  std::optional<MeasureUnit> unit = unit_named(tokens[next].text);
  if (!unit) return std::nullopt;
  const bool loose_letter = tokens[next].type == TokenType::Letter && !tokens[next].from_text;
  ++next;
  if (power == 1) power = read_power(tokens, next);
  // "2 s + 3" is algebra; "2 s" alone is a time.
  if (loose_letter && next < tokens.size() && !is(tokens, next, ",") && !is(tokens, next, "/"))
    return std::nullopt;
  at = next;
  raise(*unit, power);
  return unit;
}

void divide(MeasureUnit& unit, const MeasureUnit& by) {
  for (size_t index = 0; index < unit.powers.size(); ++index)
    unit.powers[index] = static_cast<int8_t>(unit.powers[index] - by.powers[index]);
  unit.above *= by.below;
  unit.below *= by.above;
  if (!by.other.empty()) unit.other += "/" + by.other;
}

}  // namespace

std::optional<MeasureUnit> unit_named(std::string_view word) {
  // mL and KG are accepted, but M and G are letters.
  if (word.size() == 1 && is_upper(word[0]) && !listed(" L N J W V K C F ", std::string_view(word)))
    return std::nullopt;
  const std::string low = lowered(word);
  if (low == "in" || low == "inches") return listed_unit("inch");
  if (std::optional<MeasureUnit> unit = listed_unit(low)) return unit;
  if (low.size() >= 3 && low.back() == 's')
    return listed_unit(std::string_view(low).substr(0, low.size() - 1));
  return std::nullopt;
}

bool is_currency(std::string_view word) {
  const std::string low = lowered(word);
  return listed(" usd sterling yuan rupees rupee rs euros euro eur rmb yen rubles ", low);
}

std::optional<MeasureUnit> read_unit(std::span<const Token> tokens, size_t& at) {
  if (at >= tokens.size()) return std::nullopt;
  if (std::optional<MeasureUnit> unit = read_one(tokens, at)) {
    while (is(tokens, at, "/") || is(tokens, at, "per")) {
      size_t next = at + 1;
      const std::optional<MeasureUnit> below = read_one(tokens, next, true);
      if (!below) break;
      at = next;
      divide(*unit, *below);
    }
    while (at < tokens.size() && is_noun(tokens[at])) ++at;  // "5 cm tall"
    return unit;
  }
  if (!is_noun(tokens[at])) return std::nullopt;
  // "square units", "apples left", "units^2"
  while (at < tokens.size() &&
         (is_noun(tokens[at]) || (tokens[at].from_text && tokens[at].type == TokenType::Word)))
    ++at;
  read_power(tokens, at);
  return MeasureUnit{};
}

}  // namespace convoy::answers
