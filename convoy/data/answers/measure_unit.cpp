// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/answers/measure_unit.h"

#include <algorithm>

#include "convoy/data/answers/letters.h"

namespace convoy::answers {
namespace {

bool is_word(const Token& token) {
  // Units with the name of a function: "5 min" and "5 sec" are times, min(5, 6) and sec x are
  // functions.
  if (token.type == TokenType::Function)
    return token.text == "min" || (token.text == "sec" && token.from_text);
  return token.type == TokenType::Word || token.type == TokenType::Letter;
}

// Words of other scripts behind a number that change its value: "3万", "5分之一", "3个半", "5 тысяч".
bool changes_value(std::string_view word) {
  static constexpr std::string_view kAnywhere[] = {
      "分之", "半",  "多",   "余",    "以上",  "以下", "左右", "成", "折", "至",
      "тыс",  "млн", "млрд", "милли", "полов", "万",   "亿",   "百", "千"};
  return std::any_of(std::begin(kAnywhere), std::end(kAnywhere), [&](std::string_view part) {
    return word.find(part) != std::string_view::npos;
  });
}

// True for a word that names counted things: "12 apples", "12 \text{ apples}", "12个".
bool is_noun(const Token& token) {
  static constexpr std::string_view kOrdinals = " st nd rd th ";
  if (token.type != TokenType::Word) return false;
  if (is_foreign(token.text)) return !changes_value(token.text);
  const std::string low = lowered(token.text);
  if (is_listed(
          " to million thousand billion trillion hundred dozen and or where for if when union "
          "am pm ",
          low))
    return false;
  return token.from_text || is_listed(kOrdinals, low) || (token.space_before && low.size() >= 3);
}

// A single letter is a unit only when it is upright or a space precedes it: "5 m", not "5m". T, H,
// A and S are usually names unless they are upright. A token like nm without a space before it is a
// product.
bool may_be_unit(const Token& token) {
  const std::string& text = token.text;
  if (token.from_text || text == "Omega") return true;
  if (token.type == TokenType::Letter) return token.space_before && !is_listed(" T H A S ", text);
  static constexpr std::string_view kProducts =
      " nm ns ps ng pg nl pl um us ug ul cs cg cl ks kl cd lm lx ly hp ";
  return token.type != TokenType::Sign && (token.space_before || !is_listed(kProducts, text));
}

bool is(std::span<const Token> tokens, size_t at, std::string_view text) {
  return at < tokens.size() && tokens[at].text == text;
}

// The exponent of a unit: "^2", "^{-1}", "squared"; 1 when there is none.
int read_power(std::span<const Token> tokens, size_t& at) {
  for (const auto& [text, power] : {std::pair("^2", 2), {"squared", 2}, {"^3", 3}, {"cubed", 3}})
    if (is(tokens, at, text)) {
      ++at;
      return power;
    }
  if (!is(tokens, at, "^")) return 1;
  size_t next = at + 1;
  const bool braced = is(tokens, next, "{");
  next += braced;
  const bool negative = is(tokens, next, "-");
  next += negative;
  if (next >= tokens.size() || tokens[next].type != TokenType::Number ||
      tokens[next].text.size() != 1 || tokens[next].text[0] < '1')
    return 1;
  const int power = tokens[next++].text[0] - '0';
  if (braced && !is(tokens, next++, "}")) return 1;
  at = next;
  return negative ? -power : power;
}

// A unit's symbol or name. The prefix "mu" or "k" may be a token of its own before the symbol.
std::optional<MeasureUnit> read_name(std::span<const Token> tokens, size_t& at) {
  const Token& token = tokens[at];
  if (is_prefix(token.text) && at + 1 < tokens.size() &&
      (token.text == "mu" || tokens[at + 1].text == "Omega") &&
      tokens[at + 1].type != TokenType::Sign)
    if (auto unit = unit_named(token.text + tokens[at + 1].text)) {
      at += 2;
      return unit;
    }
  if (token.text == "mu") return std::nullopt;
  std::optional<MeasureUnit> unit =
      token.text == "Omega" ? unit_named("ohm") : unit_named(token.text);
  if (unit) ++at;
  return unit;
}

// A unit of two words: "per mille", "basis points".
std::optional<MeasureUnit> read_two_words(std::span<const Token> tokens, size_t& at) {
  if (at + 1 >= tokens.size()) return std::nullopt;
  const std::string first = lowered(tokens[at].text);
  const std::string second = lowered(tokens[at + 1].text);
  const bool is_permille = first == "per" && (second == "mille" || second == "mil");
  const bool is_basis_point = first == "basis" && (second == "point" || second == "points");
  if (!is_permille && !is_basis_point) return std::nullopt;
  at += 2;
  return unit_named(is_permille ? "permille" : "bps");
}

struct UnitReader {
  std::span<const Token> tokens;
  size_t at;
  size_t last_name = 0;
  bool has_loose_letter = false;  // a letter that may be a variable
  bool has_power = false;
  bool has_neighbours = false;  // symbols without a sign between them: "m s"

  std::optional<MeasureUnit> one(bool below_line) {
    if (std::optional<MeasureUnit> unit = read_two_words(tokens, at)) {
      last_name = at - 1;
      return unit;
    }
    size_t next = at;
    int power = 1;
    if (next < tokens.size() && tokens[next].type == TokenType::Word) {
      const std::string low = lowered(tokens[next].text);
      if (low == "square" || low == "sq" || low == "кв") power = 2;
      if (low == "cubic" || low == "cu" || low == "куб") power = 3;
      if (power > 1) ++next;
    }
    // "sq. ft": the point belongs to the abbreviation.
    if (power > 1 && is(tokens, next, ".")) ++next;
    if (next >= tokens.size() || !is_word(tokens[next]) ||
        !(below_line || may_be_unit(tokens[next])))
      return std::nullopt;
    const Token& name = tokens[next];
    const std::optional<MeasureUnit> unit = read_name(tokens, next);
    if (!unit) return std::nullopt;
    has_loose_letter |= name.type == TokenType::Letter && !name.from_text;
    if (power == 1) power = read_power(tokens, next);
    has_power |= power != 1;
    last_name = static_cast<size_t>(&name - tokens.data());
    at = next;
    return raised(*unit, power);
  }

  // The unit behind "/" or "per": one unit, or a product in brackets.
  std::optional<MeasureUnit> below() {
    if (!is(tokens, at, "(")) return one(true);
    ++at;
    std::optional<MeasureUnit> product = one(true);
    while (product && !is(tokens, at, ")")) {
      if (is(tokens, at, "*")) ++at;
      const std::optional<MeasureUnit> factor = one(true);
      product = factor ? multiplied(*product, *factor) : std::nullopt;
    }
    ++at;
    return product;
  }

  // Moves `at` behind the group in braces that it stands on, and returns the tokens inside.
  std::span<const Token> group() {
    if (!is(tokens, at, "{")) return {};
    const size_t begin = at + 1;
    int depth = 0;
    for (; at < tokens.size(); ++at) {
      depth += is(tokens, at, "{") ? 1 : is(tokens, at, "}") ? -1 : 0;
      if (depth == 0) return tokens.subspan(begin, at++ - begin);
    }
    return {};
  }

  // A fraction of units: \frac{km}{h}, \frac{1}{\text{s}}, \frac{\text{m}}{\text{s}^2}.
  std::optional<MeasureUnit> fraction() {
    if (!is(tokens, at, "frac")) return std::nullopt;
    const UnitReader kept = *this;
    ++at;
    UnitReader above{group(), 0};
    UnitReader below{group(), 0};
    const bool is_inverse = above.tokens.size() == 1 && is(above.tokens, 0, "1");
    std::optional<MeasureUnit> unit =
        is_inverse ? MeasureUnit{.known = true} : above.product(false);
    const std::optional<MeasureUnit> divisor = below.product(!is_inverse);
    const std::optional<MeasureUnit> inverse = divisor ? raised(*divisor, -1) : std::nullopt;
    unit = unit && inverse ? multiplied(*unit, *inverse) : std::nullopt;
    if (!unit && is_upright(above.tokens) && is_upright(below.tokens))
      unit = MeasureUnit{};  // counted nouns: \frac{\text{dollars}}{\text{apple}}
    if (unit) {
      last_name = at - 1;
      has_loose_letter |= above.has_loose_letter || below.has_loose_letter;
    } else {
      *this = kept;
    }
    return unit;
  }

  // The product that all tokens are: "kg m", "N \cdot m"; empty when some are no unit.
  std::optional<MeasureUnit> product(bool below_line) {
    std::optional<MeasureUnit> unit = one(below_line);
    while (unit && at < tokens.size()) {
      if (is(tokens, at, "*")) ++at;
      const std::optional<MeasureUnit> factor = one(below_line);
      unit = factor ? multiplied(*unit, *factor) : std::nullopt;
    }
    return unit;
  }

  static bool is_upright(std::span<const Token> all) {
    return !all.empty() && std::all_of(all.begin(), all.end(), [](const Token& token) {
      return token.from_text && token.type == TokenType::Word;
    });
  }

  // True at a further symbol of a product without a sign: "m s^{-2}", "N m".
  bool is_symbol(size_t place) const {
    constexpr size_t kLongestSymbol = 5;
    return place < tokens.size() && is_word(tokens[place]) &&
           tokens[place].text.size() <= kLongestSymbol &&
           (tokens[place].from_text || tokens[place].type == TokenType::Letter);
  }

  std::optional<MeasureUnit> all() {
    std::optional<MeasureUnit> unit = is(tokens, at, "/")      ? MeasureUnit{.known = true}
                                      : is(tokens, at, "frac") ? fraction()
                                                               : one(false);
    bool goes_on = unit.has_value();
    while (goes_on) {
      const UnitReader kept = *this;
      std::optional<MeasureUnit> next;
      if (is(tokens, at, "/") || is(tokens, at, "per")) {
        ++at;
        if (const std::optional<MeasureUnit> divisor = below()) next = raised(*divisor, -1);
      } else if (is(tokens, at, "*")) {
        ++at;
        next = is(tokens, at, "frac") ? fraction() : one(false);
      } else if (is(tokens, at, "frac")) {
        next = fraction();
      } else if (is_symbol(at) && is_symbol(last_name)) {
        next = one(false);
        has_neighbours = true;
      }
      goes_on = next.has_value();
      if (goes_on) unit = multiplied(*unit, *next);
      goes_on = goes_on && unit;
      if (!goes_on) *this = kept;
    }
    // "2 s + 3" is algebra; "2 s" alone is a time.
    if (unit && has_loose_letter &&
        ((at < tokens.size() && !is(tokens, at, ",")) || (has_neighbours && !has_power)))
      return std::nullopt;
    return unit;
  }
};

}  // namespace

std::optional<MeasureUnit> read_unit(std::span<const Token> tokens, size_t& at) {
  if (at >= tokens.size()) return std::nullopt;
  UnitReader reader{tokens, at};
  if (is(tokens, at, "{") && !is(tokens, at + 1, "{")) {  // 9.8 {\rm m/s^2}
    const std::span<const Token> inside = reader.group();
    size_t within = 0;
    std::optional<MeasureUnit> unit = read_unit(inside, within);
    if (!unit || !unit->known || within != inside.size()) return std::nullopt;
    at = reader.at;
    return unit;
  }
  if (std::optional<MeasureUnit> unit = reader.all(); unit && reader.at > at) {
    at = reader.at;
    if (is(tokens, at, ".") && is_foreign(tokens[at - 1].text)) ++at;  // an abbreviation: "5 см."
    while (at < tokens.size() && is_noun(tokens[at])) ++at;            // nouns: "5 cm tall"
    return unit;
  }
  if (!is_noun(tokens[at])) return std::nullopt;
  // Nouns behind a number: "square units", "apples left", "units^2".
  while (at < tokens.size() &&
         (is_noun(tokens[at]) || (tokens[at].from_text && tokens[at].type == TokenType::Word)))
    ++at;
  read_power(tokens, at);
  return MeasureUnit{};
}

}  // namespace convoy::answers
