// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <optional>

#include "convoy/data/answers/comparer.h"
#include "convoy/data/answers/evaluated_node.h"
#include "convoy/data/answers/letters.h"
#include "convoy/data/answers/phrases.h"

namespace convoy::answers {
namespace {

Verdict verdict_of(Same same) {
  return same == Same::Yes ? Verdict::Yes : same == Same::No ? Verdict::No : Verdict::Unknown;
}

// Number of sample points at which two expressions must agree to count as equal. This many points
// include every kind of point (evaluate.h).
constexpr int kEnoughScalarPoints = 7;

// A number without its unit, percent sign and similar.
struct Peeled {
  Node node;
  MeasureUnit unit = {};
  bool percent = false;
  bool has_noun = false;
};

// No for two different units. Unknown where a letter has two meanings: the C of "20 C" may be a
// coulomb or a degree Celsius.
Verdict differ_in_unit(const MeasureUnit& a, const MeasureUnit& b) {
  const auto told = [](const MeasureUnit& unit, const char* name) {
    return unit.others.contains(name);
  };
  const auto is_coulomb = [](const MeasureUnit& unit) {
    return unit.is_dimension({}, "coulomb", 1);
  };
  const auto is_farad = [](const MeasureUnit& unit) {
    return unit.is_dimension({-2, -1, 2, 0, 0}, "coulomb", 2);
  };
  if ((is_coulomb(a) && told(b, "celsius")) || (told(a, "celsius") && is_coulomb(b)) ||
      (is_farad(a) && told(b, "fahrenheit")) || (told(a, "fahrenheit") && is_farad(b)))
    return Verdict::Unknown;
  return a.others.size() > 1 || b.others.size() > 1 ? Verdict::Unknown : Verdict::No;
}

// True for units that are a fixed fraction: per mille, basis point, ppm, ppb.
bool is_part(const MeasureUnit& unit) {
  return unit.others.contains("permille") || unit.others.contains("ppm") ||
         unit.others.contains("ppb") || unit.others.contains("basispoint");
}

// True for a number between 0 and 1, or their negatives.
bool may_be_share(const Node& node, Steps& steps) {
  const Number number = evaluate(node, {}, steps);
  return number.defined && number.is_real() && std::abs(number.real()) < 1;
}

// True for units that group things, such as a pair. "5 pairs" and "5 shoes" cannot be compared: the
// noun may count the pairs or the single things.
bool is_group(const MeasureUnit& unit) { return unit.others.contains("piece") && unit.above > 1; }

// Scales a quantity to base units: 5 km is 5000.
Node in_base_units(Node node, const MeasureUnit& unit) {
  Node factor = make_node(Kind::Quotient, {make_leaf(Kind::Number, std::to_string(unit.above)),
                                           make_leaf(Kind::Number, std::to_string(unit.below))});
  return make_node(Kind::Product, {std::move(node), std::move(factor)});
}

// A sum of quantities of one kind, converted to the last unit: "2 hours 30 minutes".
std::optional<Peeled> compound(const Node& node) {
  Peeled sum;
  sum.unit = node.children.back().unit;
  const Node one = make_leaf(Kind::Number, "1");
  std::vector<Node> parts;
  for (const Node& child : node.children) {
    if (child.kind != Kind::Quantity || !child.unit.known) return std::nullopt;
    parts.push_back(make_node(Kind::Quotient, {in_base_units(child.children[0], child.unit),
                                               in_base_units(one, sum.unit)}));
  }
  sum.node = make_node(Kind::Sum, std::move(parts));
  return sum;
}

Peeled peel(const Node& node) {
  switch (node.kind) {
    case Kind::Quantity: {
      Peeled peeled = peel(node.children[0]);
      if (node.unit.known) peeled.unit = node.unit;
      peeled.has_noun |= !node.unit.known;
      return peeled;
    }
    case Kind::Percent: {
      Peeled peeled = peel(node.children[0]);
      peeled.percent = true;
      return peeled;
    }
    case Kind::Negation: {
      Peeled peeled = peel(node.children[0]);
      peeled.node = make_node(Kind::Negation, {std::move(peeled.node)});
      return peeled;
    }
    case Kind::Sum:
      if (std::optional<Peeled> sum = compound(node)) return std::move(*sum);
      [[fallthrough]];
    default:
      return {node};
  }
}

// Number of digits behind the decimal point; negative where a power of ten outweighs them: 1.5 x
// 10^3 has -2. Empty for any other expression.
std::optional<int64_t> decimal_places(const Node& node) {
  switch (node.kind) {
    case Kind::Number: {
      const size_t point = node.name.find('.');
      const size_t mark = node.name.find('e');
      if (point == std::string::npos || node.name.find('|') != std::string::npos)
        return std::nullopt;
      int64_t places = static_cast<int64_t>(std::min(mark, node.name.size()) - point) - 1;
      if (mark != std::string::npos) {
        const Number exponent = parse_digits(std::string_view(node.name).substr(mark + 1));
        const bool negative = node.name[mark + 1] == '-';
        if (!exponent.small) return std::nullopt;
        places += negative ? exponent.small->above : -exponent.small->above;
      }
      return places;
    }
    case Kind::Negation:
    case Kind::Quantity:
      return decimal_places(node.children[0]);
    case Kind::Quotient: {  // a percentage: a number over 100
      const std::optional<int64_t> places = decimal_places(node.children[0]);
      if (!places || node.children[1].name != "100") return std::nullopt;
      return *places + 2;
    }
    case Kind::Product: {
      if (node.children.size() != 2 || node.children[1].kind != Kind::Power) return std::nullopt;
      const std::optional<int64_t> places = decimal_places(node.children[0]);
      Steps few(16);
      const Number base = evaluate(node.children[1].children[0], {}, few);
      const Number exponent = evaluate(node.children[1].children[1], {}, few);
      if (!places || !base.small || base.small->above != 10 || base.small->below != 1 ||
          !exponent.small || exponent.small->below != 1)
        return std::nullopt;
      return *places - exponent.small->above;
    }
    default:
      return std::nullopt;
  }
}

// True when the expression contains arcsin or a related function, whose values are angles.
bool holds_inverse(const Node& node) {
  return (node.kind == Kind::Call && node.name.starts_with("arc")) ||
         std::any_of(node.children.begin(), node.children.end(), holds_inverse);
}

bool is_two_digits(const Node& node) {
  return node.kind == Kind::Number && node.name.size() == 2 && is_digit(node.name[0]) &&
         is_digit(node.name[1]);
}

// True only with a clear sign of a time: am, pm, or a minute below ten as in 12:00. Otherwise 1:20
// is a ratio.
bool is_time(const Node& node) {
  return node.kind == Kind::Ratio && node.children.size() == 2 && is_two_digits(node.children[1]) &&
         (!node.name.empty() || node.children[1].name[0] == '0');
}

bool may_be_time(const Node& node) {
  return node.children.size() == 2 && is_two_digits(node.children[1]);
}

}  // namespace

// Ratios agree up to a factor, times of day do not.
Verdict Comparer::ratios(const Node& gold, const Node& prediction) {
  if (gold.children.size() != prediction.children.size()) return Verdict::No;
  if ((is_time(gold) && may_be_time(prediction)) || (is_time(prediction) && may_be_time(gold))) {
    const auto minutes = [&](const Node& time) {
      Number hour = evaluate(time.children[0], {}, steps_);
      if (!time.name.empty() && hour.small && hour.small->above == 12) hour = integer(0);
      if (time.name == "pm") hour = add(hour, integer(12));
      return add(multiply(hour, integer(60)), evaluate(time.children[1], {}, steps_));
    };
    const bool one_is_marked = gold.name.empty() != prediction.name.empty();
    const Number a = minutes(gold);
    const Number b = minutes(prediction);
    const Verdict as_told = verdict_of(same(a, b));
    if (!one_is_marked || as_told == Verdict::Yes) return as_told;
    return ordered(gold.children, prediction.children);
  }
  Verdict all = Verdict::Yes;
  for (size_t index = 1; index < gold.children.size(); ++index)
    all = both(all, scalars(make_node(Kind::Quotient, {gold.children[0], gold.children[index]}),
                            make_node(Kind::Quotient,
                                      {prediction.children[0], prediction.children[index]})));
  return all;
}

// Compares two numbers. One or both have a base. A missing base is accepted, two given bases
// must lead to the same value: 204_5 equals 204 and also 54 (in base 10). Only the question tells
// which of these was wanted.
Verdict Comparer::based(const Node& gold, const Node& prediction) {
  const auto value = [&](const Node& node) {
    if (node.kind != Kind::BaseNumber) return evaluate(node, {}, steps_);
    Node copy = node;
    if (copy.children[0].kind == Kind::Symbol)
      if (const std::optional<Node> number = phrase_node(copy.children[0].name))
        copy.children[0] = *number;
    return evaluate(copy, {}, steps_);
  };
  if (gold.kind == prediction.kind) return verdict_of(same(value(gold), value(prediction)));
  const Node& with_base = gold.kind == Kind::BaseNumber ? gold : prediction;
  const Node& without = gold.kind == Kind::BaseNumber ? prediction : gold;
  if (without.kind == Kind::Number && without.name == with_base.name) return Verdict::Yes;
  return same(value(with_base), value(without)) == Same::No ? Verdict::No : Verdict::Unknown;
}

Verdict Comparer::at_points(const Node& gold, const Node& prediction) {
  std::set<std::string> symbols;
  collect_symbols(gold, symbols);
  collect_symbols(prediction, symbols);
  const bool complex = contains_constant(gold, "i") || contains_constant(prediction, "i");
  const int points = symbols.empty() ? 1 : kSamplePoints;
  int agreed = 0;
  for (int index = 0; index < points && agreed < kEnoughScalarPoints && !steps_.spent(); ++index) {
    const Point point = sample_point(symbols, index, !complex && !symbols.empty());
    const Number a = evaluate(gold, point, steps_);
    const Number b = evaluate(prediction, point, steps_);
    if (!a.defined || !b.defined) continue;
    const Same verdict = same(a, b);
    if (verdict == Same::No) return Verdict::No;
    if (verdict == Same::Yes) ++agreed;
  }
  if (steps_.spent()) return Verdict::Unknown;
  return agreed >= (symbols.empty() ? 1 : 2) ? Verdict::Yes : Verdict::Unknown;
}

Verdict Comparer::values(const Node& gold, const Node& prediction) {
  const Verdict verdict = at_points(gold, prediction);
  if (verdict == Verdict::Yes) return verdict;
  const std::optional<int64_t> gold_places = decimal_places(gold);
  const std::optional<int64_t> prediction_places = decimal_places(prediction);
  if (!gold_places && !prediction_places) return verdict;
  const Number a = evaluate(gold, {}, steps_);
  const Number b = evaluate(prediction, {}, steps_);
  if (!a.defined || !b.defined || !a.is_real() || !b.is_real()) return verdict;
  // A decimal equals a value that rounds or truncates to it; the error is limited.
  int64_t places = 1000;
  if (gold_places) places = std::min(places, *gold_places);
  if (prediction_places) places = std::min(places, *prediction_places);
  const bool both_rounded = gold_places && prediction_places;
  const Real last_place = std::pow(Real(10), -static_cast<Real>(places));
  const Real allowed = last_place * (both_rounded ? Real(0.5) + Real(1e-9) : 1 - Real(1e-9));
  const Real apart = std::abs(a.real() - b.real());
  const Real larger = std::max(std::abs(a.real()), std::abs(b.real()));
  const Real tolerance = static_cast<Real>(limits_.relative_tolerance) * (1 + Real(1e-9));
  return apart <= tolerance * larger && apart <= allowed ? Verdict::Yes : verdict;
}

Verdict Comparer::quantities(const Node& gold, const Node& prediction) {
  const Peeled a = peel(gold);
  const Peeled b = peel(prediction);
  if (a.unit.known && b.unit.known) {
    if (!a.unit.same_dimension(b.unit)) return differ_in_unit(a.unit, b.unit);
    if (a.unit.above == b.unit.above && a.unit.below == b.unit.below) return values(a.node, b.node);
    return values(in_base_units(a.node, a.unit), in_base_units(b.node, b.unit));
  }
  // Per mille is not converted: 5 ‰ beside 5 % or beside 0.005 is Unknown.
  const bool gold_is_part = is_part(a.unit);
  if (gold_is_part || is_part(b.unit)) {
    const Peeled& part = gold_is_part ? a : b;
    const Peeled& other = gold_is_part ? b : a;
    if (other.percent || values(part.node, other.node) != Verdict::Yes) return Verdict::Unknown;
  }
  Verdict verdict = values(a.node, b.node);
  if ((is_group(a.unit) && b.has_noun) || (is_group(b.unit) && a.has_noun))
    return verdict == Verdict::Yes ? Verdict::Unknown : verdict;
  // A percentage equals its number and its value: 50 % equals 50, and 1/2. But 0.5 may be the
  // number of 0.5 % or a share, which is 50 %.
  if (a.percent != b.percent) {
    const Node hundred = make_leaf(Kind::Number, "100");
    const auto part = [&](const Peeled& side) {
      return side.percent ? make_node(Kind::Quotient, {side.node, hundred}) : side.node;
    };
    const Verdict by_value = values(part(a), part(b));
    if (verdict == Verdict::Yes && by_value != Verdict::Yes && may_be_share(a.node, steps_))
      return Verdict::Unknown;
    verdict = either(verdict, by_value);
  }
  if (verdict == Verdict::Yes) return verdict;
  // An angle in degrees equals the same angle in radians: 90 degrees are pi/2.
  const bool gold_is_angle = a.unit.powers[4] == 1;
  const bool prediction_is_angle = b.unit.powers[4] == 1;
  if (gold_is_angle != prediction_is_angle) {
    const Node& other = gold_is_angle ? b.node : a.node;
    const Node turned =
        make_node(Kind::Quotient, {make_node(Kind::Product, {gold_is_angle ? a.node : b.node,
                                                             make_leaf(Kind::Constant, "pi")}),
                                   make_leaf(Kind::Number, "180")});
    if (contains_constant(other, "pi") || holds_inverse(other))
      verdict = either(verdict, gold_is_angle ? values(turned, other) : values(other, turned));
  }
  return verdict;
}

Verdict Comparer::scalars(const Node& gold, const Node& prediction) {
  if (gold.kind == Kind::BaseNumber || prediction.kind == Kind::BaseNumber)
    return based(gold, prediction);
  if (gold.kind == Kind::Ratio && prediction.kind == Kind::Ratio) return ratios(gold, prediction);
  return quantities(gold, prediction);
}

}  // namespace convoy::answers
