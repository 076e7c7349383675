// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/answers/real_set.h"

#include <algorithm>
#include <cmath>

#include "convoy/data/answers/evaluated_node.h"

namespace convoy::answers {
namespace {

bool equal(const Number& a, const Number& b) { return same(a, b) == Same::Yes; }
bool less(const Number& a, const Number& b) { return !equal(a, b) && a.real() < b.real(); }

bool is_empty(const Piece& piece) {
  if (equal(piece.low, piece.high)) return piece.low_open || piece.high_open;
  return less(piece.high, piece.low);
}

Piece whole_line() { return {unbounded(false), unbounded(true), true, true}; }

// Sorts, drops empty pieces and joins adjoining ones.
RealSet tidy(RealSet pieces) {
  std::erase_if(pieces, is_empty);
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    if (!equal(a.low, b.low)) return a.low.real() < b.low.real();
    return !a.low_open && b.low_open;
  });
  RealSet joined;
  for (Piece& piece : pieces) {
    if (!joined.empty()) {
      Piece& last = joined.back();
      const bool touches = equal(piece.low, last.high) ? !(piece.low_open && last.high_open)
                                                       : less(piece.low, last.high);
      if (touches) {
        if (equal(piece.high, last.high)) {
          last.high_open = last.high_open && piece.high_open;
        } else if (less(last.high, piece.high)) {
          last.high = piece.high;
          last.high_open = piece.high_open;
        }
        continue;
      }
    }
    joined.push_back(std::move(piece));
  }
  return joined;
}

std::optional<Number> bound(const Node& node, Steps& steps) {
  const Number value = evaluate(node, {}, steps);
  if (!value.defined || !value.is_real() || std::isnan(value.real())) return std::nullopt;
  return value;
}

std::optional<RealSet> points(const std::vector<Node>& nodes, Steps& steps) {
  RealSet set;
  for (const Node& node : nodes) {
    if (node.kind == Kind::Tuple || node.kind == Kind::Union || node.kind == Kind::Set) {
      const std::optional<RealSet> part = real_set(node, steps);
      if (!part) return std::nullopt;
      set.insert(set.end(), part->begin(), part->end());
      continue;
    }
    const std::optional<Number> value = bound(node, steps);
    if (!value) return std::nullopt;
    set.push_back({*value, *value, false, false});
  }
  return tidy(std::move(set));
}

std::optional<RealSet> interval(const Node& node, Steps& steps) {
  if (node.children.size() != 2) return std::nullopt;
  const std::optional<Number> low = bound(node.children[0], steps);
  const std::optional<Number> high = bound(node.children[1], steps);
  if (!low || !high || less(*high, *low)) return std::nullopt;
  Piece piece{*low, *high, node.open == '(', node.close == ')'};
  // An end at infinity is not in the set, so it counts as open.
  if (std::isinf(low->real())) piece.low_open = true;
  if (std::isinf(high->real())) piece.high_open = true;
  return tidy({piece});
}

// True for infinity with either sign.
bool is_unbounded(const Node& node) {
  const Node& inner = node.kind == Kind::Negation ? node.children[0] : node;
  return inner.kind == Kind::Constant && inner.name == "infinity";
}

// The coefficients of a + b x for a node that is linear in its only symbol x; empty for any other
// node.
struct Line {
  Number constant;
  Number slope;
};

std::optional<Line> line(const Node& node, const std::string& symbol, Steps& steps) {
  std::vector<Number> values;
  for (const int64_t at : {0, 1, 2, -3}) {
    values.push_back(
        evaluate(node, {.values = {{symbol, integer(at)}}, .reals_only = true}, steps));
    if (!values.back().defined || !values.back().is_real()) return std::nullopt;
  }
  const Number slope = add(values[1], negate(values[0]));
  const Number at_two = add(values[1], slope);
  const Number at_minus_three = add(values[0], multiply(slope, integer(-3)));
  if (!equal(at_two, values[2]) || !equal(at_minus_three, values[3])) return std::nullopt;
  return Line{values[0], slope};
}

std::optional<RealSet> half_line(const Node& left, const Node& right, Comparison comparison,
                                 const std::string& symbol, Steps& steps) {
  const Node difference = make_node(Kind::Sum, {left, make_node(Kind::Negation, {right})});
  const std::optional<Line> found = line(difference, symbol, steps);
  if (!found || equal(found->slope, integer(0))) return std::nullopt;
  const Number zero = divide(negate(found->constant), found->slope);
  bool below = comparison == Comparison::Less || comparison == Comparison::LessEqual;
  if (found->slope.real() < 0) below = !below;
  Piece piece = whole_line();
  switch (comparison) {
    case Comparison::Equal:
      return RealSet{{zero, zero, false, false}};
    case Comparison::NotEqual:
      return complement({{zero, zero, false, false}});
    case Comparison::Less:
    case Comparison::LessEqual:
    case Comparison::Greater:
    case Comparison::GreaterEqual: {
      const bool open = comparison == Comparison::Less || comparison == Comparison::Greater;
      if (below) {
        piece.high = zero;
        piece.high_open = open;
      } else {
        piece.low = zero;
        piece.low_open = open;
      }
      return RealSet{piece};
    }
    default:
      return std::nullopt;
  }
}

// The inequality |a| < b means -b < a < b, and |a| > b means the complement.
std::optional<RealSet> absolute(const Node& inner, const Node& limit, Comparison comparison,
                                const std::string& symbol, Steps& steps) {
  const Node minus = make_node(Kind::Negation, {limit});
  const auto part = [&](const Node& bound_node, Comparison kind) {
    return half_line(inner, bound_node, kind, symbol, steps);
  };
  const bool inside = comparison == Comparison::Less || comparison == Comparison::LessEqual;
  const bool open = comparison == Comparison::Less || comparison == Comparison::Greater;
  if (!inside && comparison != Comparison::Greater && comparison != Comparison::GreaterEqual)
    return std::nullopt;
  const Comparison low = inside ? (open ? Comparison::Greater : Comparison::GreaterEqual)
                                : (open ? Comparison::Less : Comparison::LessEqual);
  const Comparison high = inside ? (open ? Comparison::Less : Comparison::LessEqual)
                                 : (open ? Comparison::Greater : Comparison::GreaterEqual);
  const std::optional<RealSet> first = part(minus, low);
  const std::optional<RealSet> second = part(limit, high);
  if (!first || !second) return std::nullopt;
  return inside ? intersected(*first, *second) : united(*first, *second);
}

bool is_absolute(const Node& node) { return node.kind == Kind::Call && node.name == "abs"; }

Comparison turned(Comparison comparison) {
  switch (comparison) {
    case Comparison::Less:
      return Comparison::Greater;
    case Comparison::LessEqual:
      return Comparison::GreaterEqual;
    case Comparison::Greater:
      return Comparison::Less;
    case Comparison::GreaterEqual:
      return Comparison::LessEqual;
    default:
      return comparison;
  }
}

std::optional<RealSet> membership(const Node& link, Comparison comparison, Steps& steps) {
  std::optional<RealSet> set = real_set(link, steps);
  if (set && comparison == Comparison::NotIn) return complement(*set);
  return set;
}

}  // namespace

RealSet united(RealSet a, const RealSet& b) {
  a.insert(a.end(), b.begin(), b.end());
  return tidy(std::move(a));
}

RealSet complement(const RealSet& set) {
  RealSet rest;
  Piece gap = whole_line();
  for (const Piece& piece : set) {
    gap.high = piece.low;
    gap.high_open = !piece.low_open;
    rest.push_back(gap);
    gap = whole_line();
    gap.low = piece.high;
    gap.low_open = !piece.high_open;
  }
  rest.push_back(gap);
  // Pieces that lie at infinity, such as (-oo, -oo], are empty.
  std::erase_if(rest, [](const Piece& piece) {
    return std::isinf(piece.low.real()) && piece.low.real() == piece.high.real();
  });
  return tidy(std::move(rest));
}

RealSet intersected(const RealSet& a, const RealSet& b) {
  return complement(united(complement(a), complement(b)));
}

Same same(const RealSet& a, const RealSet& b) {
  if (a.size() != b.size()) return Same::No;
  Same all = Same::Yes;
  for (size_t index = 0; index < a.size(); ++index) {
    if (a[index].low_open != b[index].low_open || a[index].high_open != b[index].high_open)
      return Same::No;
    for (const Same ends : {same(a[index].low, b[index].low), same(a[index].high, b[index].high)}) {
      if (ends == Same::No) return Same::No;
      if (ends == Same::Unknown) all = Same::Unknown;
    }
  }
  return all;
}

std::optional<RealSet> solution_set(const Node& told, Steps& steps) {
  std::set<std::string> symbols;
  if (told.kind != Kind::Relation) return std::nullopt;
  Node relation = told;
  for (Node& child : relation.children)  // f(x) counts as one symbol
    if (child.kind != Kind::Symbol && only_names(child) && child.kind == Kind::Product)
      child = make_leaf(Kind::Symbol, "named");
  collect_symbols(relation, symbols);
  if (symbols.size() != 1) return std::nullopt;
  RealSet solutions = {whole_line()};
  for (size_t index = 0; index < relation.relations.size(); ++index) {
    const Node& left = relation.children[index];
    const Node& right = relation.children[index + 1];
    const Comparison comparison = relation.relations[index];
    std::optional<RealSet> link;
    if (is_unbounded(left) || is_unbounded(right)) {  // no bound: -infinity < x
      const bool low =
          is_unbounded(left) ? left.kind == Kind::Negation : right.kind == Kind::Negation;
      const bool rises = comparison == Comparison::Less || comparison == Comparison::LessEqual;
      const bool falls =
          comparison == Comparison::Greater || comparison == Comparison::GreaterEqual;
      if (is_unbounded(left) == low ? !rises : !falls) return std::nullopt;
      continue;
    }
    if (comparison == Comparison::In || comparison == Comparison::NotIn) {
      link = membership(right, comparison, steps);
    } else if (is_absolute(left)) {
      link = absolute(left.children[0], right, comparison, *symbols.begin(), steps);
    } else if (is_absolute(right)) {
      link = absolute(right.children[0], left, turned(comparison), *symbols.begin(), steps);
    } else {
      link = half_line(left, right, comparison, *symbols.begin(), steps);
    }
    if (!link) return std::nullopt;
    solutions = intersected(solutions, *link);
  }
  return solutions;
}

std::optional<RealSet> real_set(const Node& node, Steps& steps) {
  const auto child = [&](size_t index) { return real_set(node.children[index], steps); };
  switch (node.kind) {
    case Kind::NamedSet:
      if (node.name.empty()) return RealSet{};
      if (node.name == "R") return RealSet{whole_line()};
      if (node.name == "R+") return tidy({{integer(0), unbounded(true), true, true}});
      if (node.name == "R-") return tidy({{unbounded(false), integer(0), true, true}});
      return std::nullopt;
    case Kind::Tuple:
      return interval(node, steps);
    case Kind::Set:
    case Kind::List:
      return points(node.children, steps);
    case Kind::Builder:
      return solution_set(node.children[0], steps);
    case Kind::Union:
    case Kind::Intersection:
    case Kind::Difference: {
      const std::optional<RealSet> left = child(0);
      const std::optional<RealSet> right = child(1);
      if (!left || !right) return std::nullopt;
      if (node.kind == Kind::Union) return united(*left, *right);
      if (node.kind == Kind::Intersection) return intersected(*left, *right);
      return intersected(*left, complement(*right));
    }
    default: {
      const std::optional<Number> value = bound(node, steps);
      if (!value) return std::nullopt;
      return RealSet{{*value, *value, false, false}};
    }
  }
}

}  // namespace convoy::answers
