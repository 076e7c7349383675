// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/answers/parameters.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "convoy/data/answers/comparer.h"
#include "convoy/data/answers/evaluated_node.h"
#include "convoy/data/answers/surroundings.h"

namespace convoy::answers {
namespace {

using Names = std::set<std::string>;
using NewNames = std::map<std::string, std::string>;

std::vector<std::string> without(const Names& all, const Names& others) {
  std::vector<std::string> rest;
  std::set_difference(all.begin(), all.end(), others.begin(), others.end(),
                      std::back_inserter(rest));
  return rest;
}

// Letters that often stand for any integer or constant when the answer states no condition on them.
bool is_usual(const std::string& name) {
  static const Names kUsual = {"k", "n", "m", "l", "t",   "s",      "j",   "p",     "q",  "r",
                               "u", "v", "c", "C", "K",   "lambda", "mu",  "alpha", "N",  "M",
                               "T", "D", "A", "B", "C_1", "C_2",    "C_3", "c_1",   "c_2"};
  return kUsual.contains(name);
}

bool is_declared(const Conditioned& side, const std::string& name) {
  return std::any_of(
      side.conditions.begin(), side.conditions.end(),
      [&](const std::string& condition) { return condition.find(name) != std::string::npos; });
}

Node renamed(Node node, const NewNames& names) {
  if (const auto name = names.find(node.name); node.kind == Kind::Symbol && name != names.end())
    node.name = name->second;
  for (Node& child : node.children) child = renamed(std::move(child), names);
  return node;
}

// The value that an assignment gives, else the node itself: (2t, t) of (x, y) = (2t, t) has the
// parameter t.
const Node& value_of(const Node& node) { return is_assignment(node) ? node.children.back() : node; }

// True for the a of f(x) = ax and y = ax. It is a constant if both answers have the same variable.
bool is_constant_of(const Node& node, const Names& shared, const std::string& name) {
  static const Names kVariables = {"x", "y", "z"};
  return is_assignment(node) && !shared.empty() && !kVariables.contains(name) &&
         !symbols_of(node.children.front()).contains(name);
}

std::string renamed_text(std::string text, const NewNames& names) {
  for (const auto& [from, to] : names)
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
  return text;
}

// The conditions of one answer, after the renaming of its symbols.
struct Told {
  Names on_symbols = {};   // on symbols of the answer: n > 2 beside 2n
  Names others = {};       // n > 2 beside 5
  bool is_needed = false;  // one of the conditions must be told by both answers
};

Told conditions_of(const Conditioned& side, const NewNames& names) {
  Told all;
  const Names symbols = symbols_of(side.node);
  for (const std::string& told : side.conditions) {
    const bool is_needed = told.starts_with(kNeeded);
    all.is_needed |= is_needed;
    const std::string condition = is_needed ? told.substr(1) : told;
    const bool is_on_symbol = std::any_of(
        symbols.begin(), symbols.end(),
        [&](const std::string& symbol) { return condition.find(symbol) != std::string::npos; });
    (is_on_symbol ? all.on_symbols : all.others).insert(renamed_text(condition, names));
  }
  return all;
}

// Lowers the verdict when the conditions differ: the same formula may then have other values. A
// condition of one answer alone is not compared, unless it is needed.
Verdict checked(const Conditioned& gold, const Conditioned& prediction, const NewNames& names,
                bool both_must_tell) {
  const Told wanted = conditions_of(gold, {});
  const Told told = conditions_of(prediction, names);
  const auto differ = [](const Names& a, const Names& b) {
    return !a.empty() && !b.empty() && a != b;
  };
  const auto all = [](const Told& side) {
    Names both = side.on_symbols;
    both.insert(side.others.begin(), side.others.end());
    return both;
  };
  const bool one_is_silent = wanted.on_symbols.empty() || told.on_symbols.empty();
  if (one_is_silent && both_must_tell) return Verdict::Unknown;
  if (differ(wanted.on_symbols, told.on_symbols) || differ(wanted.others, told.others) ||
      (one_is_silent && differ(all(wanted), all(told))) ||
      ((wanted.is_needed || told.is_needed) && all(wanted) != all(told)))
    return Verdict::Unknown;
  return Verdict::Yes;
}

// The values of all formulas, each with one integer parameter that runs from `first` to `last`.
std::optional<std::vector<Real>> values_of(const Node& node, int64_t first, int64_t last,
                                           Steps& steps) {
  if (node.kind == Kind::List || node.kind == Kind::Set) {
    std::vector<Real> all;
    for (const Node& child : node.children) {
      const std::optional<std::vector<Real>> values = values_of(child, first, last, steps);
      if (!values) return std::nullopt;
      all.insert(all.end(), values->begin(), values->end());
    }
    return all;
  }
  const Node& told = value_of(node);
  const Names symbols = symbols_of(told);
  if (is_collection(told) || told.kind == Kind::Relation || symbols.size() > 1) return std::nullopt;
  std::vector<Real> all;
  for (int64_t at = first; at <= last; ++at) {
    const Point point =
        symbols.empty() ? Point() : Point{.values = {{*symbols.begin(), integer(at)}}};
    const Number value = evaluate(told, point, steps);
    if (!value.defined || !value.is_real() || !std::isfinite(value.real())) return std::nullopt;
    all.push_back(value.real());
  }
  return all;
}

bool are_among(const std::vector<Real>& values, const std::vector<Real>& all) {
  return std::all_of(values.begin(), values.end(), [&](Real value) {
    return std::any_of(all.begin(), all.end(), [&](Real one) {
      return std::abs(one - value) <= Real(1e-9) * std::max(Real(1), std::abs(value));
    });
  });
}

// Compares two families of values. Unknown when both families have the same values, like k pi and
// -k pi.
Verdict families(const Node& gold, const Node& prediction, Steps& steps) {
  constexpr int64_t kNear = 3;
  constexpr int64_t kFar = 24;
  const auto near_gold = values_of(gold, -kNear, kNear, steps);
  const auto near_prediction = values_of(prediction, -kNear, kNear, steps);
  if (!near_gold || !near_prediction) return Verdict::Unknown;
  const auto far_gold = values_of(gold, -kFar, kFar, steps);
  const auto far_prediction = values_of(prediction, -kFar, kFar, steps);
  if (!far_gold || !far_prediction) return Verdict::Unknown;
  return are_among(*near_gold, *far_prediction) && are_among(*near_prediction, *far_gold)
             ? Verdict::Unknown
             : Verdict::No;
}

}  // namespace

Verdict with_parameters(const Conditioned& gold, const Conditioned& prediction, Verdict verdict,
                        const CheckLimits& limits, Steps& steps) {
  if (verdict == Verdict::Yes) return checked(gold, prediction, {}, false);
  constexpr size_t kMostNames = 2;
  const Names wanted = symbols_of(value_of(gold.node));
  const Names told = symbols_of(value_of(prediction.node));
  std::vector<std::string> new_names = without(wanted, told);
  const std::vector<std::string> old_names = without(told, wanted);
  Names shared;
  std::set_intersection(wanted.begin(), wanted.end(), told.begin(), told.end(),
                        std::inserter(shared, shared.begin()));
  const auto may_be_any = [&](const Conditioned& side, const std::vector<std::string>& names) {
    return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
      return is_usual(name) || is_declared(side, name) ||
             (names.size() == 1 && is_constant_of(side.node, shared, name));
    });
  };
  const bool has_other_letters =
      !new_names.empty() && new_names.size() == old_names.size() && old_names.size() <= kMostNames;
  if (has_other_letters && (may_be_any(gold, new_names) && may_be_any(prediction, old_names))) {
    do {
      NewNames names;
      for (size_t index = 0; index < old_names.size(); ++index)
        names[old_names[index]] = new_names[index];
      if (Comparer(limits, steps).equal(gold.node, renamed(prediction.node, names)) == Verdict::Yes)
        return checked(gold, prediction, names, true);
    } while (std::next_permutation(new_names.begin(), new_names.end()));
  }
  if (verdict != Verdict::No) return verdict;
  const auto is_conditioned = [](const Conditioned& side) {
    return !conditions_of(side, {}).on_symbols.empty();
  };
  if (!is_conditioned(gold) && !is_conditioned(prediction)) return verdict;
  return families(gold.node, prediction.node, steps);
}

}  // namespace convoy::answers
