// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/answers/evaluated_node.h"

#include <limits>
#include <numbers>
#include <vector>

namespace convoy::answers {
namespace {

// The finaliser of SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number
// generators", 2014).
uint64_t scattered(uint64_t value) {
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

Number constant(const std::string& name) {
  if (name == "pi") {
    const Real pi = std::numbers::pi_v<Real>;
    return approximation(pi, kEpsilon * pi);
  }
  if (name == "e") {
    const Real e = std::numbers::e_v<Real>;
    return approximation(e, kEpsilon * e);
  }
  if (name == "i") return approximation({0, 1}, 0);
  return unbounded(true);
}

// The argument of a function, where degrees are converted to radians. Elsewhere a unit does not
// change the number.
Number in_radians(const Node& node, const Point& point, Steps& steps) {
  const Number value = evaluate(node, point, steps);
  if (node.kind != Kind::Quantity || node.unit.powers[4] != 1) return value;
  return multiply(value, divide(constant("pi"), integer(180)));
}

Number based_number(const Node& node, const Point& point, Steps& steps) {
  if (!steps.take(static_cast<int64_t>(node.name.size()))) return undefined_number();
  const Number base = evaluate(node.children[0], point, steps);
  if (!base.small || base.small->below != 1) return parse_digits(node.name);
  return parse_in_base(node.name, base.small->above).value_or(undefined_number());
}

// The value of a finite sum or product over integers; each term takes steps from the budget.
Number series(const Node& node, const Point& point, Steps& steps) {
  constexpr int64_t kMostTerms = 5'000;
  const Number first = evaluate(node.children[0], point, steps);
  const Number last = evaluate(node.children[1], point, steps);
  if (!first.small || !last.small || first.small->below != 1 || last.small->below != 1)
    return undefined_number();
  const int64_t begin = first.small->above;
  const int64_t end = last.small->above;
  if (begin < -kMostTerms || begin > kMostTerms || end > 2 * kMostTerms ||
      end - begin > kMostTerms || end < begin)
    return undefined_number();
  Point inner = point;
  Number total = integer(node.open == '+' ? 0 : 1);
  for (int64_t index = begin; index <= end; ++index) {
    inner.values[node.name] = integer(index);
    const Number term = evaluate(node.children[2], inner, steps);
    if (!term.defined) return term;
    total = node.open == '+' ? add(total, term) : multiply(total, term);
  }
  return total;
}

Number known(Number value, const Point& point) {
  return point.reals_only && value.defined && !value.is_real() ? undefined_number() : value;
}

}  // namespace

Number evaluate(const Node& node, const Point& point, Steps& steps) {
  if (!steps.take()) return undefined_number();
  const auto child = [&](size_t index) { return evaluate(node.children[index], point, steps); };
  switch (node.kind) {
    case Kind::Number:
      if (!steps.take(static_cast<int64_t>(node.name.size()) / 8)) return undefined_number();
      return parse_digits(node.name);
    case Kind::BaseNumber:
      return based_number(node, point, steps);
    case Kind::Symbol: {
      const auto found = point.values.find(node.name);
      return found == point.values.end() ? undefined_number() : found->second;
    }
    case Kind::Constant:
      if (const auto index = point.values.find(node.name); index != point.values.end())
        return index->second;  // the symbol i is the index of a sum
      return constant(node.name);
    case Kind::Sum: {
      Number sum = child(0);
      for (size_t index = 1; index < node.children.size(); ++index) sum = add(sum, child(index));
      return sum;
    }
    case Kind::Product: {
      Number product = child(0);
      for (size_t index = 1; index < node.children.size(); ++index)
        product = multiply(product, child(index));
      return product;
    }
    case Kind::Quotient:
      return divide(child(0), child(1));
    case Kind::Ratio:
      return node.children.size() == 2 ? divide(child(0), child(1)) : undefined_number();
    case Kind::Power: {
      const Node& base = node.children[0];
      if (base.kind == Kind::Constant && base.name == "e") {
        const Number exponent = child(1);
        if (exponent.defined && exponent.is_real()) return apply("exp", {&exponent, 1}, steps);
      }
      return known(raise(child(0), child(1)), point);
    }
    case Kind::Negation:
      return negate(child(0));
    case Kind::Percent:
      return divide(child(0), integer(100));
    case Kind::Quantity:
      return child(0);
    case Kind::Series:
      return series(node, point, steps);
    case Kind::Call: {
      std::vector<Number> arguments;
      for (const Node& argument : node.children)
        arguments.push_back(in_radians(argument, point, steps));
      return known(apply(node.name, arguments, steps), point);
    }
    default:
      return undefined_number();
  }
}

void collect_symbols(const Node& node, std::set<std::string>& into) {
  if (node.kind == Kind::Symbol) into.insert(node.name);
  if (node.kind == Kind::BaseNumber) return;
  if (node.kind == Kind::Series) {
    const bool outside = into.contains(node.name);
    for (const Node& child : node.children) collect_symbols(child, into);
    if (!outside) into.erase(node.name);  // the index is not a free symbol of the series
    return;
  }
  for (const Node& child : node.children) collect_symbols(child, into);
}

std::set<std::string> symbols_of(const Node& node) {
  std::set<std::string> symbols;
  collect_symbols(node, symbols);
  symbols.erase("");
  return symbols;
}

bool contains_constant(const Node& node, std::string_view name) {
  if (node.kind == Kind::Constant && node.name == name) return true;
  for (const Node& child : node.children)
    if (contains_constant(child, name)) return true;
  return false;
}

Point sample_point(const std::set<std::string>& symbols, int index, bool reals_only) {
  static constexpr int64_t kWhole[] = {5, 3, 7, 2, 11, 4, 13, 6};
  Point point;
  point.reals_only = reals_only;
  uint64_t place = 0;
  for (const std::string& symbol : symbols) {
    const uint64_t draw = scattered(place * kSamplePoints + static_cast<uint64_t>(index));
    if (index % 4 == 3) {
      point.values[symbol] =
          integer(kWhole[place % 8] + static_cast<int64_t>(place / 8) * 16 + (index / 4) * 9);
    } else {
      Real value =
          Real(0.3) + Real(2.5) * static_cast<Real>(draw >> 11) / static_cast<Real>(1ULL << 53);
      if (index % 4 == 2 && ((draw >> 3) + place) % 2 == 0) value = -value;
      point.values[symbol] = sample({scattered(draw), scattered(draw + 1)}, value);
    }
    ++place;
  }
  return point;
}

}  // namespace convoy::answers
