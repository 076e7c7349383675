// SPDX-License-Identifier: Apache-2.0
//
// Compares congruences. A congruence such as n = 1 (mod 4) is a set of numbers that have a
// remainder.
#include <algorithm>
#include <numeric>
#include <optional>
#include <set>

#include "convoy/data/answers/comparer.h"
#include "convoy/data/answers/evaluated_node.h"

namespace convoy::answers {
namespace {

constexpr int64_t kLargestModulus = 3000;

// Whole numbers that are congruent to one of `residues`.
struct ResidueClasses {
  std::string name = {};  // the symbol n of n = 1 (mod 4); empty: the congruence names none
  int64_t modulus = 1;
  std::set<int64_t> residues = {};
  bool is_solved = true;  // false: an unsolved form, such as 2n = 3 (mod 5) or 4k + 1
};

std::optional<int64_t> whole(const Number& value) {
  if (!value.defined || !value.small || value.small->below != 1) return std::nullopt;
  return value.small->above;
}

int64_t least_residue(int64_t value, int64_t modulus) {
  return (value % modulus + modulus) % modulus;
}

bool is_named(const Node& congruence) { return !symbols_of(congruence.children[1]).empty(); }

std::optional<ResidueClasses> classes_of_one(const Node& node, Steps& steps) {
  const std::optional<int64_t> modulus = whole(evaluate(node.children[0], {}, steps));
  if (!modulus || *modulus < 1 || *modulus > kLargestModulus) return std::nullopt;
  const Node& told = node.children[1];
  const std::set<std::string> symbols = symbols_of(told);
  if (symbols.size() > 1) return std::nullopt;
  ResidueClasses found{.modulus = *modulus};
  if (!symbols.empty()) found.name = *symbols.begin();
  found.is_solved = told.kind == Kind::Symbol;
  for (size_t index = 2; index < node.children.size(); ++index) {
    const std::optional<int64_t> rest = whole(evaluate(node.children[index], {}, steps));
    if (!rest) return std::nullopt;
    const int64_t wanted = least_residue(*rest, *modulus);
    if (found.is_solved) found.residues.insert(wanted);
    for (int64_t value = 0; value < *modulus && !found.is_solved; ++value) {
      const std::optional<int64_t> told_value =
          whole(evaluate(told, {.values = {{found.name, integer(value)}}}, steps));
      if (!told_value) return std::nullopt;
      if (least_residue(*told_value, *modulus) == wanted) found.residues.insert(value);
    }
  }
  return found;
}

// The residue class of an expression with one free integer: 4k + 1, or n = 4k + 1.
std::optional<ResidueClasses> classes_of_family(const Node& node, Steps& steps) {
  const Node& told = is_assignment(node) ? node.children.back() : node;
  const std::set<std::string> symbols = symbols_of(told);
  if (symbols.size() != 1 || is_collection(told)) return std::nullopt;
  std::vector<int64_t> values;
  for (const int64_t at : {0, 1, 2, -3}) {
    const std::optional<int64_t> value =
        whole(evaluate(told, {.values = {{*symbols.begin(), integer(at)}}}, steps));
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  const int64_t step = values[1] - values[0];
  if (values[2] - values[1] != step || values[0] - values[3] != 3 * step || step == 0 ||
      std::abs(step) > kLargestModulus)
    return std::nullopt;
  return ResidueClasses{.modulus = std::abs(step),
                        .residues = {least_residue(values[0], std::abs(step))},
                        .is_solved = false};
}

ResidueClasses widened(const ResidueClasses& classes, int64_t modulus) {
  ResidueClasses wide = classes;
  wide.modulus = modulus;
  wide.residues.clear();
  for (const int64_t one : classes.residues)
    for (int64_t value = one; value < modulus; value += classes.modulus)
      wide.residues.insert(value);
  return wide;
}

// `as_union`: the union of the two sets of numbers, else their intersection.
std::optional<ResidueClasses> joined(const ResidueClasses& a, const ResidueClasses& b,
                                     bool as_union) {
  const int64_t modulus = std::lcm(a.modulus, b.modulus);
  if (a.name != b.name || modulus > kLargestModulus) return std::nullopt;
  ResidueClasses all = widened(a, modulus);
  const ResidueClasses other = widened(b, modulus);
  if (as_union)
    all.residues.insert(other.residues.begin(), other.residues.end());
  else
    std::erase_if(all.residues, [&](int64_t value) { return !other.residues.contains(value); });
  all.is_solved = a.is_solved && b.is_solved;
  return all;
}

std::optional<ResidueClasses> classes_of(const Node& node, Steps& steps) {
  if (node.kind == Kind::Congruence) return classes_of_one(node, steps);
  if (node.kind != Kind::List) return classes_of_family(node, steps);
  std::optional<ResidueClasses> all;
  for (const Node& child : node.children) {
    const std::optional<ResidueClasses> one = classes_of(child, steps);
    if (!one) return std::nullopt;
    // Several remainders modulo one number are alternatives (a union). Remainders modulo different
    // numbers are a system (an intersection).
    all = all ? joined(*all, *one, node.open == 'o' || all->modulus == one->modulus) : one;
    if (!all) return std::nullopt;
  }
  return all;
}

Verdict same_classes(const ResidueClasses& gold, const ResidueClasses& prediction) {
  const int64_t modulus = std::lcm(gold.modulus, prediction.modulus);
  if (modulus > kLargestModulus * kLargestModulus / 8) return Verdict::Unknown;
  if (widened(gold, modulus).residues != widened(prediction, modulus).residues) return Verdict::No;
  const bool same_name =
      gold.name.empty() || prediction.name.empty() || gold.name == prediction.name;
  return same_name && prediction.is_solved ? Verdict::Yes : Verdict::Unknown;
}

}  // namespace

bool is_remainder(const Node& node) {
  const Node& told = is_equation(node) && node.children.size() == 2 ? node.children.back() : node;
  return told.kind == Kind::Call && told.name == "mod" && told.children.size() == 2;
}

Node as_congruence(const Node& node) {
  if (!is_remainder(node)) return node;
  const bool is_named = node.kind == Kind::Relation;
  const Node& told = is_named ? node.children.back() : node;
  return make_node(
      Kind::Congruence,
      {told.children[1], is_named ? node.children.front() : make_leaf(Kind::Symbol, ""),
       told.children[0]});
}

bool holds_congruence(const Node& node) {
  if (node.kind == Kind::Congruence) return true;
  return node.kind == Kind::List &&
         std::any_of(node.children.begin(), node.children.end(), holds_congruence);
}

// Compares a congruence with a plain number. When the congruence names no unknown, the number may
// be the remainder itself.
Verdict Comparer::remainder(const Node& congruence, const Node& number) {
  const bool is_one = congruence.kind == Kind::Congruence && congruence.children.size() == 3;
  if (is_one && !is_named(congruence)) {
    const Verdict verdict = equal(congruence.children[2], number);
    if (verdict != Verdict::No) return verdict;
  }
  const std::optional<ResidueClasses> classes = classes_of(congruence, steps_);
  const std::optional<int64_t> value = whole(evaluate(number, {}, steps_));
  if (!classes || !value) return Verdict::Unknown;
  return classes->residues.contains(least_residue(*value, classes->modulus)) ? Verdict::Unknown
                                                                             : Verdict::No;
}

Verdict Comparer::congruences(const Node& gold, const Node& prediction) {
  const auto is_plain_number = [&](const Node& node) {
    return !holds_congruence(node) && !is_collection(node) && node.kind != Kind::Relation &&
           symbols_of(node).empty();
  };
  if (is_plain_number(gold)) return remainder(prediction, gold);
  if (is_plain_number(prediction)) return remainder(gold, prediction);
  const std::optional<ResidueClasses> wanted = classes_of(gold, steps_);
  const std::optional<ResidueClasses> found = classes_of(prediction, steps_);
  if (wanted && found) return same_classes(*wanted, *found);
  if (gold.kind != Kind::Congruence || prediction.kind != Kind::Congruence) return Verdict::Unknown;
  // The classes are unknown: modulus or remainder holds symbols or is too large. So the parts are
  // compared.
  const Verdict moduli = equal(gold.children[0], prediction.children[0]);
  const Verdict told = equal(gold.children[1], prediction.children[1]);
  const Verdict rests = unordered({gold.children.begin() + 2, gold.children.end()},
                                  {prediction.children.begin() + 2, prediction.children.end()});
  const Verdict all = both(both(moduli, told), rests);
  return all == Verdict::No && moduli == Verdict::Yes ? Verdict::Unknown : all;
}

}  // namespace convoy::answers
