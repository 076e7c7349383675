// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/answers/parser.h"

#include <algorithm>
#include <set>

#include "convoy/data/answers/evaluated_node.h"
#include "convoy/data/answers/letters.h"
#include "convoy/data/answers/matrix.h"
#include "convoy/data/answers/parser_state.h"
#include "convoy/data/answers/surroundings.h"

namespace convoy::answers {
namespace {

bool contains(const Node& node, Kind kind) {
  return node.kind == kind ||
         std::any_of(node.children.begin(), node.children.end(),
                     [kind](const Node& child) { return contains(child, kind); });
}

// The tree with + or - in place of every +-.
Node with_sign(const Node& node, bool plus) {
  Node copy = node;
  for (Node& child : copy.children) child = with_sign(child, plus);
  if (node.kind != Kind::PlusMinus) return copy;
  const bool adds = (node.name == "pm") == plus;
  Node last = std::move(copy.children.back());
  if (!adds) last = make_node(Kind::Negation, {std::move(last)});
  if (copy.children.size() == 1) return last;
  return make_node(Kind::Sum, {std::move(copy.children.front()), std::move(last)});
}

// True for a condition on a symbol: "k in Z" beside x = k pi is not a solution itself.
bool is_condition(const Node& node) {
  return node.kind == Kind::Relation && node.relations.front() == Comparison::In &&
         node.children.back().kind == Kind::NamedSet;
}

std::string membership_text(const Node& membership) {
  std::set<std::string> symbols;
  collect_symbols(membership, symbols);
  std::string all;
  for (const std::string& symbol : symbols) all += symbol;
  return all + ":" + membership.children.back().name;
}

}  // namespace

bool Parser::is_word(std::string_view word, size_t ahead) const {
  const Token& candidate = token(ahead);
  return candidate.type == TokenType::Word && lowered(candidate.text) == word;
}

bool Parser::take_separator(bool& semicolon) {
  bool any = false;
  while (!at_end()) {
    if (is(",") || is("&") || is("newline") || is_word("and") || is_word("or")) {
      any = true;
      said_or_ = said_or_ || is_word("or");
      said_and_ = said_and_ || is_word("and");
    } else if (is(";")) {
      any = semicolon = true;
    } else {
      break;
    }
    ++at_;
  }
  return any;
}

// The elements between commas. Where semicolons separate groups with commas, each group is a tuple.
std::vector<Node> Parser::elements(bool inside) {
  const Deeper deeper(*this);
  std::vector<std::vector<Node>> groups(1);
  bool grouped = false;
  while (!failed_) {
    element(groups.back());
    bool semicolon = false;
    if (!take_separator(semicolon)) break;
    if (at_end() && !inside) break;
    grouped = grouped || groups.back().size() > 1;
    if (semicolon) groups.emplace_back();
  }
  std::vector<Node> all;
  const bool tuples = grouped && groups.size() > 1;
  for (std::vector<Node>& group : groups) {
    if (tuples && group.size() > 1) {
      all.push_back(make_node(Kind::Tuple, std::move(group)));
    } else {
      std::move(group.begin(), group.end(), std::back_inserter(all));
    }
  }
  return all;
}

void Parser::element(std::vector<Node>& into) {
  Node node = relation();
  if (failed_) return;
  add_with_signs(std::move(node), into);
}

// Adds one element, or two for the signs of +-. Every further +- doubles their number, so copies
// are taken from the step budget.
void Parser::add_with_signs(Node node, std::vector<Node>& into) {
  if (!contains(node, Kind::PlusMinus)) {
    into.push_back(std::move(node));
  } else if (steps_.take(2 * nodes_in(node))) {
    into.push_back(with_sign(node, true));
    into.push_back(with_sign(node, false));
  } else {
    fail();
  }
}

std::optional<Comparison> Parser::take_comparison() {
  static constexpr std::pair<std::string_view, Comparison> kSigns[] = {
      {"=", Comparison::Equal},         {"equiv", Comparison::Equal},  {"!=", Comparison::NotEqual},
      {"<", Comparison::Less},          {"<=", Comparison::LessEqual}, {">", Comparison::Greater},
      {">=", Comparison::GreaterEqual}, {"approx", Comparison::About}, {"in", Comparison::In},
      {"notin", Comparison::NotIn}};
  for (const auto& [sign, comparison] : kSigns)
    if (take(sign)) return comparison;
  return std::nullopt;
}

Node Parser::relation() {
  const Deeper deeper(*this);
  Node left = ratio();
  Node chain;
  while (!failed_) {
    if (is("equiv")) chain.open = 'm';
    const std::optional<Comparison> comparison = take_comparison();
    if (!comparison) break;
    if (chain.children.empty()) {
      chain.kind = Kind::Relation;
      chain.children.push_back(std::move(left));
    }
    Node right = ratio();
    // An approximation behind an exact value is dropped: x = 1/3 ~ 0.33 and 1/3 ~ 0.33 mean 1/3. In
    // x ~ 0.33 the approximation is the only value.
    const bool rounds = *comparison == Comparison::About &&
                        (chain.relations.size() > 0 || !only_names(chain.children.front()));
    if (rounds) continue;
    chain.relations.push_back(*comparison);
    chain.children.push_back(std::move(right));
  }
  if (chain.relations.empty() && !chain.children.empty()) {
    left = std::move(chain.children.front());
    chain.children.clear();
  }
  const bool is_alone = chain.children.empty();
  Node told = is_alone ? std::move(left) : std::move(chain);
  if (take("pmod") || (!is_alone && take("mod")))
    return congruence(std::move(told), braced_or_single());
  if (!take("mod")) return told;
  Node rest = make_node(Kind::Call, {std::move(told), braced_or_single()});
  rest.name = "mod";
  return rest;
}

// A congruence: x = 3 (mod 7), or 3 (mod 7) without a symbol.
Node Parser::congruence(Node told, Node divisor) {
  Node node = make_node(Kind::Congruence, {std::move(divisor)});
  if (told.kind != Kind::Relation) {
    node.children.push_back(make_leaf(Kind::Symbol, ""));
    node.children.push_back(std::move(told));
    return node;
  }
  for (const Comparison comparison : told.relations)
    if (comparison != Comparison::Equal) return fail();
  node.children.push_back(std::move(told.children.front()));
  node.children.push_back(std::move(told.children.back()));
  return node;
}

// True at the half of the day behind a time: "am", "PM", "p.m.".
bool Parser::at_half_of_day() const {
  if (is_word("am") || is_word("pm")) return true;
  const std::string half = lowered(token().text);
  return (half == "a" || half == "p") && is(".", 1) && lowered(token(2).text) == "m";
}

std::string Parser::half_of_day() {
  if (!at_half_of_day()) return {};
  const std::string half = lowered(token().text).substr(0, 1) + "m";
  at_ += token().type == TokenType::Word ? 1 : 3;
  take(".");
  return half;
}

Node Parser::ratio() {
  Node first = set_expression();
  const auto takes_colon = [this] {  // the sign of a ratio: 3 : 4, 3 to 4
    if (is_word("to")) {
      ++at_;
      return true;
    }
    return take(":");
  };
  if (!is(":") && !is_word("to")) return first;
  Node node = make_node(Kind::Ratio, {});
  node.children.push_back(std::move(first));
  while (takes_colon()) node.children.push_back(set_expression());
  node.name = half_of_day();
  return node;
}

Node Parser::set_expression() {
  Node left = sum();
  while (!failed_) {
    Kind kind = Kind::Union;
    if (take("union")) {
      kind = Kind::Union;
    } else if (take("intersection")) {
      kind = Kind::Intersection;
    } else if (take("setminus")) {
      kind = Kind::Difference;
    } else {
      break;
    }
    left = make_node(kind, {std::move(left), sum()});
  }
  return left;
}

// The modulus behind a list belongs to every element: x = 1, 3 (mod 4).
void Parser::share_modulus(std::vector<Node>& all) {
  for (size_t last = all.size(); last-- > 1;) {
    if (all[last].kind != Kind::Congruence || !all[last].children[1].name.empty()) continue;
    size_t first = last;
    while (first > 0 && all[first].open != 'm' && all[first - 1].kind != Kind::Congruence) --first;
    if (all[first].open != 'm' || all[first].kind != Kind::Relation) continue;
    Node shared = congruence(std::move(all[first]), all[last].children[0]);
    for (size_t index = first + 1; index <= last && !failed_; ++index)
      shared.children.push_back(index == last ? all[last].children[2] : all[index]);
    all[first] = std::move(shared);
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(first) + 1,
              all.begin() + static_cast<std::ptrdiff_t>(last) + 1);
    last = first + 1;
  }
}

Node Parser::answer() {
  tokens_ = without_surroundings(std::move(tokens_), conditions_);
  if (tokens_.empty()) return fail();
  std::vector<Node> all = elements(false);
  if (!at_end()) return fail();
  if (failed_) return {};
  if (all.size() > 1) {
    for (const Node& node : all)
      if (is_condition(node)) conditions_.push_back(membership_text(node));
    std::erase_if(all, is_condition);
    share_modulus(all);
  }
  if (all.size() == 1) return std::move(all.front());
  Node list = make_node(Kind::List, std::move(all));
  if (said_or_ || said_and_) list.open = said_or_ ? 'o' : 'a';
  return list;
}

// Parses the rest behind an opening bracket. One element in round brackets is that element; several
// are a tuple or an interval.
Node Parser::brackets(char open) {
  Node node = make_node(Kind::Tuple, {});
  if (is(")") || is("]")) return fail();
  node.children = elements(true);
  node.open = open;
  if (take(")")) {
    node.close = ')';
  } else if (take("]")) {
    node.close = ']';
  } else if (open == ']' && take("[")) {  // the French form of an open interval
    node.close = ')';
  } else {
    return fail();
  }
  if (open == ']') node.open = '(';
  if (node.children.size() == 1) {
    Node only = std::move(node.children.front());
    return only;
  }
  return node;
}

// Parses the rest behind "\{" or "{": {x | x > 2}, {1, 2}. TeX does not print "{", so {x} means x
// there.
Node Parser::braces() {
  Node node = make_node(Kind::Set, {});
  if (take("\\}") || take("}")) return make_leaf(Kind::NamedSet, "");
  ++bars_open_;  // so that the bar of {x | x > 2} begins no absolute value
  Node first = set_expression();
  --bars_open_;
  if (take("|") || take(":")) {
    node.kind = Kind::Builder;
    node.children.push_back(relation());
    while (!at_end() && !is("\\}") && !is("}")) ++at_;
  } else {
    // The first element may continue with a relation or a further operation, so parsing goes on
    // from it.
    std::vector<Node> rest;
    if (const std::optional<Comparison> comparison = take_comparison()) {
      Node chain = make_node(Kind::Relation, {});
      chain.children.push_back(std::move(first));
      chain.relations.push_back(*comparison);
      chain.children.push_back(set_expression());
      while (const std::optional<Comparison> further = take_comparison()) {
        chain.relations.push_back(*further);
        chain.children.push_back(set_expression());
      }
      first = std::move(chain);
      if (take("|") || take(":")) {  // a condition behind the relation: {x in R | x > 2}
        Node builder = make_node(Kind::Builder, {});
        builder.children.push_back(relation());
        while (!at_end() && !is("\\}") && !is("}")) ++at_;
        if (!take("\\}")) expect("}");
        return builder;
      }
    }
    add_with_signs(std::move(first), node.children);
    bool semicolon = false;
    if (take_separator(semicolon)) {
      rest = elements(true);
      std::move(rest.begin(), rest.end(), std::back_inserter(node.children));
    }
  }
  if (!take("\\}")) expect("}");
  return node;
}

Node Parser::named_set() {
  Node node = make_leaf(Kind::NamedSet, "");
  if (take("emptyset")) return node;
  if (token().type == TokenType::Sign && token().text.starts_with("set ")) {
    node.name = token().text.substr(4);
    ++at_;
    return node;
  }
  expect("mathbb");
  const bool braced = take("{");
  node.name = token().text;
  if (token().type != TokenType::Letter) return fail();
  ++at_;
  if (braced) expect("}");
  if (take("^")) node.name += is("+") || is("-") || is("*") ? tokens_[at_++].text : "^";
  if (node.name.ends_with('^')) braced_or_single();
  return node;
}

Node Parser::matrix_rows(bool with_columns) {
  Node node = make_node(with_columns ? Kind::Matrix : Kind::List, {});
  size_t in_row = 0;
  while (!at_end() && !token().text.starts_with("end ")) {
    if (take("newline")) {
      if (node.columns == 0) node.columns = in_row;
      if (in_row != node.columns && in_row > 0) return fail();
      in_row = 0;
    } else if (!take("&") && !take(",")) {
      element(node.children);
      ++in_row;
    }
  }
  if (node.columns == 0) node.columns = in_row;
  if (with_columns && (node.columns == 0 || node.children.size() % node.columns != 0))
    return fail();
  ++at_;
  return node;
}

// The rows of the environment "cases". Rows with conditions are the pieces of a value, each a
// tuple: (1, x > 0). Without conditions they are a list, such as a system of equations.
Node Parser::case_rows() {
  Node list = make_node(Kind::List, {});
  std::vector<Node> row;
  bool has_condition = false;
  const auto end_row = [&] {
    if (has_condition && row.size() > 1 && row.front().kind != Kind::Relation) {
      list.children.push_back(make_node(Kind::Tuple, std::move(row)));
      list.children.back().open = list.open = kPiece;
    } else {
      std::move(row.begin(), row.end(), std::back_inserter(list.children));
    }
    row.clear();
    has_condition = false;
  };
  while (!at_end() && !token().text.starts_with("end ")) {
    if (take("newline")) {
      end_row();
    } else if (is("&") || is(",") || is_word("and") || is_word("or") ||
               introduces_condition(lowered(token().text))) {
      has_condition |= is("&") || introduces_condition(lowered(token().text));
      ++at_;
    } else {
      element(row);
    }
  }
  end_row();
  ++at_;
  return list;
}

Node Parser::environment(std::string_view name) {
  static constexpr std::string_view kMatrices[] = {"pmatrix", "bmatrix", "matrix",
                                                   "Bmatrix", "array",   "smallmatrix"};
  static constexpr std::string_view kLines[] = {"cases", "aligned", "align", "align*", "gathered"};
  if (name == "vmatrix") {
    const Deeper deeper(*this);
    const std::optional<Node> value = determinant(matrix_rows(true));
    return value ? *value : fail();
  }
  const bool matrix =
      std::find(std::begin(kMatrices), std::end(kMatrices), name) != std::end(kMatrices);
  if (!matrix && std::find(std::begin(kLines), std::end(kLines), name) == std::end(kLines))
    return fail();
  if (name == "array" && take("{")) {  // column format, such as {cc}
    while (!at_end() && !take("}")) ++at_;
  }
  const Deeper deeper(*this);
  return name == "cases" ? case_rows() : matrix_rows(matrix);
}

Parsed parse_answer(std::vector<Token> tokens, bool wide_divisor, Steps& steps) {
  Parser parser(std::move(tokens), wide_divisor, steps);
  Parsed parsed;
  Node node = parser.answer();
  if (!parser.failed() && !steps.spent()) parsed.node = std::move(node);
  parsed.conditions = parser.conditions();
  parsed.divides_product = parser.divides_product();
  return parsed;
}

}  // namespace convoy::answers
