// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "convoy/data/answers/letters.h"
#include "convoy/data/answers/parser_state.h"
#include "convoy/data/answers/surroundings.h"

namespace convoy::answers {
namespace {

// True for the fraction of a mixed number: 3 \frac{1}{2} is a sum, not a product.
bool is_proper_fraction(const Node& node) {
  return node.kind == Kind::Quotient && is_integer(node.children[0]) &&
         is_integer(node.children[1]);
}

Node power_of(Node base, std::string_view exponent) {
  return make_node(Kind::Power, {std::move(base), make_leaf(Kind::Number, std::string(exponent))});
}

Node transposed(const Node& matrix) {
  const size_t rows = matrix.children.size() / matrix.columns;
  Node turned = make_node(Kind::Matrix, {});
  turned.columns = rows;
  for (size_t column = 0; column < matrix.columns; ++column)
    for (size_t row = 0; row < rows; ++row)
      turned.children.push_back(matrix.children[row * matrix.columns + column]);
  return turned;
}

// C_5^2 as the binomial coefficient of 5 over 2; empty for anything else.
std::optional<Node> combinations(const Node& symbol, const Node& raised) {
  constexpr size_t kMostDigits = 3;
  if (symbol.kind != Kind::Symbol || !symbol.name.starts_with("C_") || !is_integer(raised))
    return std::nullopt;
  const std::string above = symbol.name.substr(2);
  const auto is_count = [](const std::string& digits) {
    return !digits.empty() && digits.size() <= kMostDigits &&
           std::all_of(digits.begin(), digits.end(), is_digit);
  };
  if (!is_count(above) || !is_count(raised.name) || std::stoi(raised.name) > std::stoi(above))
    return std::nullopt;
  Node node = make_node(Kind::Call, {make_leaf(Kind::Number, above), raised});
  node.name = "binom";
  return node;
}

}  // namespace

// True at a further part of a quantity: "2 hours 30 minutes", "5 feet and 3 inches".
bool Parser::joins_quantity() const {
  const size_t skip = is_word("and") || is(",") ? 1 : 0;
  if (token(skip).type != TokenType::Number) return false;
  size_t at = at_ + skip + 1;
  const std::optional<MeasureUnit> unit = read_unit(tokens_, at);
  return unit && unit->known;
}

Node Parser::sum() {
  const Deeper deeper(*this);
  Node left = product();
  std::vector<Node> terms;
  const auto add = [&](Node term) {
    if (terms.empty()) terms.push_back(std::move(left));
    terms.push_back(std::move(term));
  };
  while (!failed_) {
    if (take("+")) {
      add(product());
    } else if (take("-")) {
      add(make_node(Kind::Negation, {product()}));
    } else if (is("pm") || is("mp")) {
      Node both = make_node(Kind::PlusMinus, {});
      both.name = token().text;
      ++at_;
      both.children.push_back(terms.empty() ? std::move(left)
                                            : make_node(Kind::Sum, std::move(terms)));
      both.children.push_back(product());
      terms.clear();
      left = std::move(both);
    } else if (const Node& last = terms.empty() ? left : terms.back();
               last.kind == Kind::Quantity && last.unit.known && joins_quantity()) {
      if (token().type != TokenType::Number) ++at_;
      Node next = product();
      if (next.kind == Kind::Quantity && !next.unit.same_dimension(last.unit)) return fail();
      add(std::move(next));
    } else {
      break;
    }
  }
  return terms.empty() ? std::move(left) : make_node(Kind::Sum, std::move(terms));
}

bool Parser::at_unit() const {
  size_t at = at_;
  return !at_end() && read_unit(tokens_, at).has_value();
}

bool Parser::starts_factor() const {
  if (at_end() || at_half_of_day()) return false;
  switch (token().type) {
    case TokenType::Letter:
    case TokenType::Function:
      return true;
    case TokenType::Word:
      return !is_word("and") && !is_word("or") && !is_word("to") &&
             !introduces_condition(lowered(token().text));
    case TokenType::Number:
      return false;
    case TokenType::Unknown:
      return true;  // parsing it as a factor reports the failure
    case TokenType::Sign:
      break;
  }
  static constexpr std::string_view kOpening[] = {"(",
                                                  "[",
                                                  "{",
                                                  "frac",
                                                  "sqrt",
                                                  "sum",
                                                  "prod",
                                                  "binom",
                                                  "lfloor",
                                                  "lceil",
                                                  "langle",
                                                  "$",
                                                  "\\{",
                                                  "begin pmatrix",
                                                  "begin bmatrix",
                                                  "begin matrix",
                                                  "begin vmatrix",
                                                  "begin array"};
  if (token().text.starts_with("frac ")) return true;
  if (is("|")) return bars_open_ == 0;
  return std::find(std::begin(kOpening), std::end(kOpening), token().text) != std::end(kOpening);
}

// True at a unit below a line without a number: "5 /mol".
bool Parser::starts_inverse_unit() const { return is("/") && token(1).from_text && at_unit(); }

bool Parser::at_bracket() const {
  size_t ahead = 0;
  while (is("{", ahead)) ++ahead;
  return is("(", ahead) || is("[", ahead);
}

bool Parser::behind_bracket() const {
  return at_ > 0 && (tokens_[at_ - 1].text == ")" || tokens_[at_ - 1].text == "]");
}

// True at the fraction of a mixed number in plain text: "2 1/2".
bool Parser::starts_plain_mixed(const std::vector<Node>& factors) const {
  return factors.size() == 1 && is_integer(factors.back()) && !behind_bracket() &&
         token().type == TokenType::Number && token().space_before && is("/", 1) &&
         token(2).type == TokenType::Number;
}

// Reads the divisor of a quotient. In 1/2x it is 2, or 2x where divisors are wide.
Node Parser::quotient_divisor() {
  Node first = factor();
  if (!starts_factor() || at_unit()) return first;
  divides_product_ = true;
  if (!wide_divisor_) return first;
  std::vector<Node> divisors;
  divisors.push_back(std::move(first));
  while (starts_factor() && !at_unit() && !failed_) divisors.push_back(power());
  return make_node(Kind::Product, std::move(divisors));
}

// Reads a factor that follows the others without a sign. A bracket makes a product: 2(1/2), (2)
// 1/2. Without a bracket, 2 1/2 is a mixed number.
void Parser::append_factor(std::vector<Node>& factors) {
  const bool is_bracketed = at_bracket() || behind_bracket();
  Node next = power();
  const bool may_mix = !is_bracketed && is_integer(factors.back());
  if (may_mix && next.kind == Kind::Percent &&
      is_proper_fraction(next.children[0])) {  // a mixed percentage: 33 1/3 %
    next.children[0] =
        make_node(Kind::Sum, {std::move(factors.back()), std::move(next.children[0])});
    factors.back() = std::move(next);
  } else if (may_mix && is_proper_fraction(next)) {
    Node mixed = make_node(Kind::Sum, {std::move(factors.back()), std::move(next)});
    factors.back() = std::move(mixed);
  } else {
    factors.push_back(std::move(next));
  }
}

Node Parser::product() {
  const Deeper deeper(*this);
  if (take("-")) return make_node(Kind::Negation, {product()});
  if (take("+")) return product();
  if (is("pm") || is("mp")) {
    Node both = make_node(Kind::PlusMinus, {});
    both.name = token().text;
    ++at_;
    both.children.push_back(product());
    return both;
  }
  std::vector<Node> factors;
  factors.push_back(factor());
  const auto whole = [&] {
    if (factors.size() == 1) return std::move(factors.front());
    return make_node(Kind::Product, std::move(factors));
  };
  while (!failed_ && steps_.take()) {
    if (take("*")) {
      factors.push_back(factor());
    } else if (!starts_inverse_unit() && take("/")) {
      Node below = quotient_divisor();
      Node above = whole();
      factors.clear();
      factors.push_back(make_node(Kind::Quotient, {std::move(above), std::move(below)}));
    } else if (at_unit()) {
      const Node& last = factors.back();
      if (last.kind == Kind::Symbol && last.name == "a") return fail();  // an article: "a cat"
      Node quantity = make_node(Kind::Quantity, {});
      quantity.children.push_back(whole());
      quantity.unit = *read_unit(tokens_, at_);
      return quantity;
    } else if (starts_plain_mixed(factors)) {
      Node above = number();
      ++at_;
      Node part = make_node(Kind::Quotient, {std::move(above), number()});
      factors = {make_node(Kind::Sum, {std::move(factors.front()), std::move(part)})};
    } else if (starts_factor()) {
      append_factor(factors);
    } else {
      break;
    }
  }
  if (steps_.spent()) return fail();
  return whole();
}

Node Parser::factor() {
  if (take("-")) return make_node(Kind::Negation, {factor()});
  if (take("+")) return factor();
  return power();
}

Node Parser::exponent() {
  static constexpr std::string_view kOrdinals[] = {"st", "nd", "rd", "th"};
  const bool braced = take("{");
  // Ordinals and degrees are no powers: 5^{th}, 30^{\circ}.
  if (is("degree") ||
      (token().type == TokenType::Word && std::find(std::begin(kOrdinals), std::end(kOrdinals),
                                                    token().text) != std::end(kOrdinals))) {
    Node mark = make_leaf(Kind::Symbol, is("degree") ? "degree" : "ordinal");
    ++at_;
    if (braced) expect("}");
    return mark;
  }
  if (braced) {
    Node node = relation();
    expect("}");
    return node;
  }
  if (take("-")) return make_node(Kind::Negation, {exponent()});
  if (take("+") || take("*")) return exponent();
  Node node = atom();
  if (take("^")) node = make_node(Kind::Power, {std::move(node), exponent()});
  return node;
}

Node Parser::power() {
  const Deeper deeper(*this);
  Node base = postfix(atom());
  while (!failed_ && steps_.take() && (is("^") || is("^2") || is("^3"))) {
    if (!take("^")) {
      base = power_of(std::move(base), token().text.substr(1));
      ++at_;
    } else {
      Node raised = exponent();
      const bool is_mark = raised.kind == Kind::Symbol;
      if (is_mark && raised.name == "degree") {
        Node degrees = make_node(Kind::Quantity, {std::move(base)});
        degrees.unit = *unit_named("degree");
        base = std::move(degrees);
      } else if (is_mark && raised.name == "ordinal") {
        continue;
      } else if (is_mark && raised.name == "T" &&
                 (base.kind == Kind::Matrix || base.kind == Kind::Tuple)) {
        if (base.kind == Kind::Matrix) base = transposed(base);
        continue;  // a tuple equals its transpose
      } else if (std::optional<Node> count = combinations(base, raised)) {
        base = std::move(*count);
      } else {
        base = make_node(Kind::Power, {std::move(base), std::move(raised)});
      }
    }
    base = postfix(std::move(base));
  }
  return base;
}

// The factor named by a word behind a number: "2.5 million".
std::string_view Parser::magnitude() const {
  static constexpr std::pair<std::string_view, std::string_view> kMagnitudes[] = {
      {"dozen", "12"},        {"hundred", "100"},        {"thousand", "1000"},
      {"million", "1000000"}, {"billion", "1000000000"}, {"trillion", "1000000000000"}};
  for (const auto& [word, digits] : kMagnitudes)
    if (is_word(word)) return digits;
  return {};
}

Node Parser::postfix(Node base) {
  while (!failed_) {
    if (const std::string_view digits = magnitude(); !digits.empty() && base.kind == Kind::Number) {
      ++at_;
      base =
          make_node(Kind::Product, {std::move(base), make_leaf(Kind::Number, std::string(digits))});
      continue;
    }
    if (take("!")) {
      base = make_node(Kind::Call, {std::move(base)});
      base.name = "factorial";
    } else if (take("%")) {
      base = make_node(Kind::Percent, {std::move(base)});
    } else if (take("degree")) {
      Node degrees = make_node(Kind::Quantity, {std::move(base)});
      degrees.unit = *unit_named("degree");
      base = std::move(degrees);
    } else if (base.kind == Kind::Number && take("$")) {
      Node dollars = make_node(Kind::Quantity, {std::move(base)});
      dollars.unit = *unit_named("dollar");
      base = std::move(dollars);
    } else if (base.kind == Kind::Quantity && token().type == TokenType::Letter &&
               (token().text == "C" || token().text == "F")) {
      base.unit = *unit_named(token().text == "C" ? "celsius"
                                                  : "fahrenheit");  // a temperature, not an angle
      ++at_;
    } else {
      break;
    }
  }
  return base;
}

void Parser::split_word() {
  const Token word = tokens_[at_];
  std::vector<Token> letters;
  for (const char letter : word.text)
    letters.push_back({TokenType::Letter, std::string(1, letter),
                       letters.empty() && word.space_before, word.from_text});
  tokens_.erase(tokens_.begin() + static_cast<std::ptrdiff_t>(at_));
  tokens_.insert(tokens_.begin() + static_cast<std::ptrdiff_t>(at_), letters.begin(),
                 letters.end());
}

Node Parser::atom() {
  const Deeper deeper(*this);
  constexpr size_t kLongestProduct = 12;  // letters; a longer run is a word
  if (!steps_.take()) return fail();
  switch (token().type) {
    case TokenType::Number:
      return number();
    case TokenType::Word:
      if (is_currency(token().text)) return money();
      if (!token().from_text && token().text.size() <= kLongestProduct &&
          std::all_of(token().text.begin(), token().text.end(), is_letter))
        split_word();
      return symbol();
    case TokenType::Letter:
      return symbol();
    case TokenType::Function:
      return call();
    case TokenType::Sign:
      return sign_atom();
    case TokenType::Unknown:
      break;
  }
  return fail();
}

// An amount behind its currency: "Rs. 50".
Node Parser::money() {
  Node node = make_node(Kind::Quantity, {});
  node.unit = unit_named(token().text).value_or(MeasureUnit{});
  ++at_;
  take(".");
  node.children.push_back(number());
  return node;
}

Node Parser::number() {
  if (token().type != TokenType::Number) return fail();
  Node node = make_leaf(Kind::Number, token().text);
  ++at_;
  if (!take("_")) return node;
  node.kind = Kind::BaseNumber;
  node.children.push_back(braced_or_single());
  return node;
}

// True at the application of an unknown function: f(2) and g(x) are not products.
bool Parser::starts_application() const {
  static constexpr std::string_view kFunctions[] = {"f", "g", "h", "F", "G"};
  if (token().type != TokenType::Letter || !is("(", 1) ||
      std::find(std::begin(kFunctions), std::end(kFunctions), token().text) == std::end(kFunctions))
    return false;
  const size_t argument = is("-", 2) ? 3 : 2;
  return (token(argument).type == TokenType::Number || token(argument).type == TokenType::Letter) &&
         is(")", argument + 1);
}

Node Parser::symbol() {
  if (starts_application()) {
    Node applied = make_leaf(Kind::Symbol, "");
    while (!is(")")) applied.name += tokens_[at_++].text;
    applied.name += tokens_[at_++].text;
    return applied;
  }
  static constexpr std::string_view kConstants[] = {"pi", "e", "i", "infinity"};
  Node node = make_leaf(Kind::Symbol, token().text);
  const bool word = token().type == TokenType::Word;
  ++at_;
  if (word) node.name = lowered(node.name);
  if (take("_")) {
    node.name += '_';
    if (take("{")) {
      while (!at_end() && !is("}")) node.name += tokens_[at_++].text;
      expect("}");
    } else if (!at_end()) {
      node.name += tokens_[at_++].text;
    }
  } else if (std::find(std::begin(kConstants), std::end(kConstants), node.name) !=
             std::end(kConstants)) {
    node.kind = Kind::Constant;
  }
  while (take("'")) node.name += '\'';
  return node;
}

}  // namespace convoy::answers
