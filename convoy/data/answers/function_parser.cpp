// SPDX-License-Identifier: Apache-2.0
//
// The parser's functions, fractions, roots and other constructs that begin with a sign.
#include <algorithm>

#include "convoy/data/answers/letters.h"
#include "convoy/data/answers/matrix.h"
#include "convoy/data/answers/parser_state.h"

namespace convoy::answers {
namespace {

bool starts_an_index(const Node& node) {
  return node.kind == Kind::Relation && node.relations.size() == 1 &&
         node.relations[0] == Comparison::Equal &&
         (node.children[0].kind == Kind::Symbol || node.children[0].name == "i");
}

}  // namespace

// The argument of a function without brackets: "\sin 2x" takes everything up to the next sign or
// function.
Node Parser::call_argument() {
  std::vector<Node> factors;
  factors.push_back(take("-") ? make_node(Kind::Negation, {power()}) : power());
  while (!failed_ && starts_factor() && token().type != TokenType::Function && !is("(") &&
         !at_unit())
    factors.push_back(power());
  Node argument = factors.size() == 1 ? std::move(factors.front())
                                      : make_node(Kind::Product, std::move(factors));
  if (!is("/")) return argument;
  divides_product_ = true;
  if (!wide_divisor_) return argument;
  ++at_;
  return make_node(Kind::Quotient, {std::move(argument), power()});
}

Node Parser::call() {
  const Deeper deeper(*this);
  Node node = make_node(Kind::Call, {});
  node.name = token().text;
  ++at_;
  std::vector<Node> base;
  std::vector<Node> raised;
  for (int round = 0; round < 2; ++round) {
    if (base.empty() && take("_")) base.push_back(braced_or_single());
    if (raised.empty() && take("^")) raised.push_back(exponent());
  }
  if (node.name == "log" && base.empty() && token().type == TokenType::Number && is("(", 1) &&
      !token().space_before)
    base.push_back(number());  // log2(8)
  if (take("(")) {
    node.children = elements(true);
    if (!take(")")) expect("]");
  } else {
    node.children.push_back(call_argument());
  }
  std::move(base.begin(), base.end(), std::back_inserter(node.children));
  if (node.name == "det") {
    const std::optional<Node> value = determinant(node.children[0]);
    if (!value) return fail();
    node = *value;
  }
  if (raised.empty()) return node;
  const bool inverse = raised[0].kind == Kind::Negation && is_integer(raised[0].children[0]) &&
                       raised[0].children[0].name == "1";
  if (inverse && (node.name == "sin" || node.name == "cos" || node.name == "tan")) {
    node.name = "arc" + node.name;
    return node;
  }
  return make_node(Kind::Power, {std::move(node), std::move(raised[0])});
}

// The argument of \frac and similar commands: a group in braces, or one token. A number without
// braces is cut after its first digit.
Node Parser::braced_or_single() {
  const Deeper deeper(*this);
  if (take("{")) {
    Node node = relation();
    if (is(",")) {
      std::vector<Node> all;
      all.push_back(std::move(node));
      bool semicolon = false;
      while (take_separator(semicolon) && !failed_) all.push_back(relation());
      node = make_node(Kind::List, std::move(all));
    }
    expect("}");
    return node;
  }
  return atom();
}

Node Parser::fraction() {
  const auto part = [&]() -> Node {
    if (token().type == TokenType::Number && token().text.size() > 1 &&
        std::all_of(token().text.begin(), token().text.end(), is_digit)) {
      Node digit = make_leaf(Kind::Number, token().text.substr(0, 1));
      tokens_[at_].text.erase(0, 1);
      return digit;
    }
    return braced_or_single();
  };
  Node above = part();
  // Without braces only one digit belongs to the fraction: \frac1{23}, \frac{1}23.
  Node below = part();
  return make_node(Kind::Quotient, {std::move(above), std::move(below)});
}

// A sum or product with bounds: \sum_{k=1}^{10} k^2. Its term extends to the next sign.
Node Parser::series(char sign) {
  const Deeper deeper(*this);
  std::vector<Node> bounds;
  std::string index;
  for (int round = 0; round < 2; ++round) {
    if (index.empty() && take("_")) {
      Node start = braced_or_single();
      if (!starts_an_index(start)) return fail();
      index = start.children[0].name;
      bounds.insert(bounds.begin(), std::move(start.children[1]));
    } else if (take("^")) {
      bounds.push_back(exponent());
    }
  }
  if (index.empty() || bounds.size() != 2) return fail();
  bounds.push_back(product());
  Node node = make_node(Kind::Series, std::move(bounds));
  node.name = index;
  node.open = sign;
  return node;
}

Node Parser::root() {
  Node degree = make_leaf(Kind::Number, "2");
  if (take("[")) {
    degree = relation();
    expect("]");
  }
  Node under;
  if (take("(")) {
    under = relation();
    expect(")");
  } else {
    under = braced_or_single();
  }
  Node node = make_node(Kind::Call, {std::move(under), std::move(degree)});
  node.name = "root";
  return node;
}

Node Parser::between(std::string_view close, std::string_view function) {
  Node node = make_node(Kind::Call, {});
  node.name = function;
  node.children.push_back(relation());
  expect(close);
  return node;
}

Node Parser::sign_atom() {
  if (take("(")) return brackets('(');
  if (take("[")) return brackets('[');
  if (take("]")) return brackets(']');
  if (take("\\{")) return braces();
  if (take("{")) {
    Node node = braces();
    if (node.kind == Kind::Set && node.children.size() == 1) {
      Node only = std::move(node.children.front());
      return only;
    }
    if (node.kind == Kind::NamedSet) return fail();
    return node;
  }
  if (take("|")) {
    ++bars_open_;
    const bool norm = take("|");
    Node node = between("|", "abs");
    if (norm) expect("|");
    --bars_open_;
    return node;
  }
  if (take("langle")) {
    Node node = make_node(Kind::Tuple, elements(true));
    expect("rangle");
    return node;
  }
  if (take("lfloor")) return between("rfloor", "floor");
  if (take("lceil")) return between("rceil", "ceil");
  if (take("frac")) return fraction();
  if (take("sqrt")) return root();
  if (take("sum")) return series('+');
  if (take("prod")) return series('*');
  if (take("binom")) {
    Node above = braced_or_single();
    Node node = make_node(Kind::Call, {std::move(above), braced_or_single()});
    node.name = "binom";
    return node;
  }
  if (take("$")) {
    Node node = make_node(Kind::Quantity, {postfix(number())});
    node.unit = *unit_named("dollar");
    size_t behind = at_;
    if (read_unit(tokens_, behind)) at_ = behind;  // the currency is named twice: "$5 dollars"
    return node;
  }
  if (is("emptyset") || is("mathbb") || token().text.starts_with("set ")) return named_set();
  if (token().text.starts_with("begin ")) {
    const std::string name = token().text.substr(6);
    ++at_;
    return environment(name);
  }
  if (token().text.starts_with("frac ")) {  // a character such as ½
    const std::string digits = token().text.substr(5);
    ++at_;
    return make_node(Kind::Quotient, {make_leaf(Kind::Number, digits.substr(0, 1)),
                                      make_leaf(Kind::Number, digits.substr(2))});
  }
  return fail();
}

}  // namespace convoy::answers
