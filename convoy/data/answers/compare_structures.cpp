// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "convoy/data/answers/comparer.h"
#include "convoy/data/answers/evaluated_node.h"
#include "convoy/data/answers/matrix.h"
#include "convoy/data/answers/real_set.h"

namespace convoy::answers {
namespace {

bool is_finite(const Node& node) { return node.kind == Kind::List || node.kind == Kind::Set; }

bool is_pair(const Node& node) { return node.kind == Kind::Tuple && node.children.size() == 2; }

// (a, b) may be a point or an interval; [a, b) cannot be a point.
bool may_be_point(const Node& node) {
  return node.kind == Kind::Tuple &&
         (node.children.size() != 2 || (node.open == '(' && node.close == ')'));
}

// True for a list of pieces of a set, at least one of them an inequality: "x < 1 or x = 2", "x < 1,
// [3, 4]".
bool are_pieces(const std::vector<Node>& nodes) {
  return nodes.size() > 1 && std::any_of(nodes.begin(), nodes.end(), is_inequality);
}

// `as_union`: the union of the pieces, else their intersection. Empty where a piece is no set of
// numbers, or two pieces have different symbols.
std::optional<RealSet> joined_pieces(const Node& list, bool as_union, Steps& steps) {
  std::optional<RealSet> all;
  std::set<std::string> names;
  for (const Node& node : list.children) {
    std::set<std::string> symbols;
    collect_symbols(node, symbols);
    if (!names.empty() && !symbols.empty() && names != symbols) return std::nullopt;
    if (!symbols.empty()) names = std::move(symbols);
    std::optional<RealSet> part =
        node.kind == Kind::Relation ? solution_set(node, steps) : real_set(node, steps);
    if (!part) return std::nullopt;
    if (!all) {
      all = std::move(part);
    } else {
      all = as_union ? united(*all, *part) : intersected(*all, *part);
    }
  }
  return all;
}

// Yes when the pieces of `list` together are the set `wanted`: "x < 1 or x > 2" is a union, "x > 1
// and x < 2" an intersection. Without "or" the verdict tries both. An empty intersection is no
// reading. A union behind the word "and" gives Unknown: "x < 1 and x > 2" may just list the two
// pieces.
Verdict joins_to(const Node& list, const std::optional<RealSet>& wanted, Steps& steps) {
  if (!wanted) return Verdict::Unknown;
  bool may_be_loose = false;
  for (const bool as_union : {true, false}) {
    const std::optional<RealSet> all = joined_pieces(list, as_union, steps);
    if (!all) return Verdict::Unknown;
    if (!as_union && (list.open == 'o' || all->empty())) break;
    if (same(*all, *wanted) != Same::Yes) continue;
    if (as_union && list.open == 'a')
      may_be_loose = true;
    else
      return Verdict::Yes;
  }
  return may_be_loose ? Verdict::Unknown : Verdict::No;
}

// The set that the list means: the union of its pieces behind "or", else the intersection. Commas
// mean the union when the intersection is empty.
std::optional<RealSet> told_set(const Node& list, Steps& steps) {
  if (list.open == 'o') return joined_pieces(list, true, steps);
  std::optional<RealSet> all = joined_pieces(list, false, steps);
  return all && all->empty() && list.open != 'a' ? joined_pieces(list, true, steps) : all;
}

// The values of assignments, in order: 1, 2 of x = 1, y = 2.
std::vector<Node> assigned_values(const std::vector<Node>& nodes) {
  std::vector<Node> values;
  for (const Node& node : nodes)
    values.push_back(is_assignment(node) ? node.children.back() : node);
  return values;
}

// (x, y) = (1, 2) as the list x = 1, y = 2; empty for anything else.
std::optional<Node> one_by_one(const Node& node) {
  if (!is_assignment(node)) return std::nullopt;
  const Node& names = node.children.front();
  const Node& values = node.children.back();
  if (names.kind != Kind::Tuple || values.kind != Kind::Tuple ||
      names.children.size() != values.children.size())
    return std::nullopt;
  Node list = make_node(Kind::List, {});
  for (size_t index = 0; index < names.children.size(); ++index) {
    list.children.push_back(
        make_node(Kind::Relation, {names.children[index], values.children[index]}));
    list.children.back().relations = {Comparison::Equal};
  }
  return list;
}

// The one name of all assignments: "x" when every name is x or an x with an index; else empty.
std::string one_name(const Node& list) {
  std::string name;
  for (const Node& node : list.children) {
    const std::string& told = node.children.front().name;
    const std::string base = told.substr(0, told.find('_'));
    if (node.children.front().kind != Kind::Symbol || (!name.empty() && base != name)) return {};
    name = base;
  }
  return name;
}

bool all_assignments(const Node& node) {
  return node.kind == Kind::List &&
         std::all_of(node.children.begin(), node.children.end(), is_assignment);
}

// Compares the words that join equal pieces. "x < 1 or x > 2" and "x < 1 and x > 2" are equal only
// if both words lead to the same set. For equations "or" and "and" usually mean the same.
Verdict by_joining_words(const Node& gold, const Node& prediction, Steps& steps) {
  const bool holds_inequality = are_pieces(gold.children) || are_pieces(prediction.children);
  const bool one_says_or = (gold.open == 'o') != (prediction.open == 'o');
  if (gold.open == prediction.open) return Verdict::Yes;
  if (!holds_inequality) {
    const bool names_several = all_assignments(gold) && one_name(gold).empty();
    return one_says_or && names_several ? Verdict::Unknown : Verdict::Yes;
  }
  const std::optional<RealSet> wanted = told_set(gold, steps);
  const std::optional<RealSet> found = told_set(prediction, steps);
  if (!wanted || !found) return one_says_or ? Verdict::Unknown : Verdict::Yes;
  return same(*wanted, *found) == Same::Yes ? Verdict::Yes : Verdict::Unknown;
}

}  // namespace

Verdict Comparer::ordered(const std::vector<Node>& gold, const std::vector<Node>& prediction) {
  if (gold.size() != prediction.size()) return Verdict::No;
  Verdict all = Verdict::Yes;
  for (size_t index = 0; index < gold.size() && all != Verdict::No; ++index)
    all = both(all, equal(gold[index], prediction[index]));
  return all;
}

// Compares as sets: each element of either side equals one of the other side.
Verdict Comparer::unordered(const std::vector<Node>& gold, const std::vector<Node>& prediction) {
  std::vector<bool> used(prediction.size(), false);
  Verdict all = Verdict::Yes;
  for (const Node& wanted : gold) {
    Verdict best = Verdict::No;
    for (size_t index = 0; index < prediction.size() && best != Verdict::Yes; ++index) {
      const Verdict verdict = equal(wanted, prediction[index]);
      if (verdict == Verdict::Yes) used[index] = true;
      if (verdict != Verdict::No) best = verdict;
      if (steps_.spent()) return Verdict::Unknown;
    }
    all = both(all, best);
    if (all == Verdict::No) return all;
  }
  for (size_t index = 0; index < prediction.size() && all == Verdict::Yes; ++index) {
    if (used[index]) continue;
    Verdict best = Verdict::No;
    for (const Node& wanted : gold) best = either(best, equal(wanted, prediction[index]));
    all = both(all, best);
  }
  return all;
}

Verdict Comparer::tuples(const Node& gold, const Node& prediction) {
  if (is_pair(gold) && is_pair(prediction) &&
      (gold.open != prediction.open || gold.close != prediction.close)) {
    const std::optional<RealSet> wanted = real_set(gold, steps_);
    const std::optional<RealSet> found = real_set(prediction, steps_);
    return wanted && found && same(*wanted, *found) == Same::Yes ? Verdict::Yes : Verdict::No;
  }
  return ordered(gold.children, prediction.children);
}

Verdict Comparer::collections(const Node& gold, const Node& prediction) {
  if (gold.kind == Kind::Tuple && prediction.kind == Kind::Tuple) return tuples(gold, prediction);
  if (gold.kind == Kind::List && are_pieces(gold.children) && !is_finite(prediction)) {
    return joins_to(gold, real_set(prediction, steps_), steps_);
  }
  if (prediction.kind == Kind::List && are_pieces(prediction.children) && !is_finite(gold)) {
    const bool is_readable = std::none_of(
        prediction.children.begin(), prediction.children.end(),
        [](const Node& node) { return node.kind == Kind::Relation && !is_solved(node); });
    const Verdict verdict = joins_to(prediction, real_set(gold, steps_), steps_);
    return verdict == Verdict::Yes && !is_readable ? Verdict::Unknown : verdict;
  }
  if (is_finite(gold) && is_finite(prediction)) {
    const Verdict verdict = unordered(gold.children, prediction.children);
    if (verdict == Verdict::Yes && gold.kind == Kind::List && prediction.kind == Kind::List)
      return by_joining_words(gold, prediction, steps_);
    const bool gold_names = all_assignments(gold);
    const bool one_names =
        gold_names != all_assignments(prediction) ||
        (gold_names && !one_name(gold).empty() && one_name(gold) == one_name(prediction));
    if (!one_names || gold.children.size() != prediction.children.size()) return verdict;
    return either(verdict,
                  unordered(assigned_values(gold.children), assigned_values(prediction.children)));
  }
  if (may_be_point(gold) && is_finite(prediction))
    return ordered(gold.children, assigned_values(prediction.children));
  if (is_finite(gold) && may_be_point(prediction)) {
    if (all_assignments(gold)) return ordered(assigned_values(gold.children), prediction.children);
    const Verdict verdict = unordered(gold.children, prediction.children);
    if (verdict == Verdict::Yes) return verdict;
  }
  // A set with one element equals that element, also when the element is an interval.
  if (is_finite(gold) && gold.children.size() == 1) return equal(gold.children[0], prediction);
  if (is_finite(prediction) && prediction.children.size() == 1)
    return equal(gold, prediction.children[0]);
  if (gold.kind == Kind::NamedSet && prediction.kind == Kind::NamedSet)
    return gold.name == prediction.name ? Verdict::Yes : Verdict::No;
  const auto is_nothing = [](const Node& node) {
    return node.kind == Kind::NamedSet && node.name.empty();
  };
  if ((is_nothing(gold) && !is_collection(prediction)) ||
      (is_nothing(prediction) && !is_collection(gold)))
    return Verdict::No;
  const std::optional<RealSet> wanted = real_set(gold, steps_);
  const std::optional<RealSet> found = real_set(prediction, steps_);
  if (wanted && found) {
    const Same verdict = same(*wanted, *found);
    return verdict == Same::Yes  ? Verdict::Yes
           : verdict == Same::No ? Verdict::No
                                 : Verdict::Unknown;
  }
  if (gold.kind == prediction.kind && gold.kind != Kind::Builder && gold.name == prediction.name)
    return gold.kind == Kind::Difference ? ordered(gold.children, prediction.children)
                                         : unordered(gold.children, prediction.children);
  return wanted.has_value() != found.has_value() && (is_finite(gold) || is_finite(prediction))
             ? Verdict::No
             : Verdict::Unknown;
}

Verdict Comparer::matrices(const Node& gold, const Node& prediction) {
  std::optional<Node> wanted = matrix_value(gold, steps_);
  std::optional<Node> found = matrix_value(prediction, steps_);
  if (!wanted && !found) return Verdict::Unknown;
  // A vector may be written as a matrix with one column or one row, or as a tuple.
  if (!wanted || !found) {
    const Node& vector = wanted ? *wanted : *found;
    const Node& other = wanted ? prediction : gold;
    const bool flat = vector.columns == 1 || vector.columns == vector.children.size();
    if (vector.children.size() == 1) {
      return wanted ? equal(vector.children[0], prediction) : equal(gold, vector.children[0]);
    }
    if (!flat || !may_be_point(other)) return Verdict::No;
    return wanted ? ordered(vector.children, other.children)
                  : ordered(other.children, vector.children);
  }
  if (wanted->columns != found->columns) {
    const bool vectors = (wanted->columns == 1 || wanted->columns == wanted->children.size()) &&
                         (found->columns == 1 || found->columns == found->children.size());
    if (!vectors) return Verdict::No;
    // A row may be a column that is written in one line.
    const Verdict entries = ordered(wanted->children, found->children);
    return entries == Verdict::Yes ? Verdict::Unknown : entries;
  }
  return ordered(wanted->children, found->children);
}

// Compares piecewise values, or one piece of each. The same conditions with other values are wrong;
// other conditions may have the same meaning, and other forms, such as |x|, the same values.
Verdict Comparer::pieces(const Node& gold, const Node& prediction) {
  if (gold.open != prediction.open || gold.kind != prediction.kind) return Verdict::Unknown;
  if (gold.kind == Kind::Tuple) return ordered(gold.children, prediction.children);
  const Verdict all = unordered(gold.children, prediction.children);
  if (all != Verdict::No) return all;
  const auto conditions = [](const Node& list) {
    std::vector<Node> told;
    for (const Node& piece : list.children)
      if (piece.open == kPiece)
        told.insert(told.end(), piece.children.begin() + 1, piece.children.end());
    return told;
  };
  return unordered(conditions(gold), conditions(prediction)) == Verdict::Yes ? Verdict::No
                                                                             : Verdict::Unknown;
}

Verdict Comparer::equal(const Node& gold, const Node& prediction) {
  constexpr int64_t kCopies = 4;  // steps of one comparison, without the evaluations in it
  if (!steps_.take(kCopies)) return Verdict::Unknown;
  // Beside another modulus, 3 mod 7 is a residue class and not the number 3.
  const auto tells_modulus = [](const Node& node) {
    return is_remainder(node) || holds_congruence(node);
  };
  if ((is_remainder(gold) && tells_modulus(prediction)) ||
      (is_remainder(prediction) && tells_modulus(gold))) {
    const Node wanted = as_congruence(gold);
    const Node found = as_congruence(prediction);
    const bool are_numbers_alike = is_remainder(gold) && is_remainder(prediction) &&
                                   equal(wanted.children[0], found.children[0]) == Verdict::Yes;
    if (!are_numbers_alike) return congruences(wanted, found);
  }
  if (holds_congruence(gold) || holds_congruence(prediction)) return congruences(gold, prediction);
  const bool gold_relates = gold.kind == Kind::Relation;
  const bool prediction_relates = prediction.kind == Kind::Relation;
  if (!gold_relates && !prediction_relates && (gold.open == kPiece || prediction.open == kPiece))
    return pieces(gold, prediction);
  if (all_assignments(gold))
    if (const std::optional<Node> list = one_by_one(prediction)) return collections(gold, *list);
  if (all_assignments(prediction))
    if (const std::optional<Node> list = one_by_one(gold)) return collections(*list, prediction);
  // The prediction has one assignment and the reference several: one solution is not all of them.
  if (all_assignments(gold) && is_assignment(prediction))
    return unordered(gold.children, {prediction});
  if (is_equation(prediction) && !gold_relates && !all_assignments(gold))
    return equal(gold, prediction.children.back());
  if (is_assignment(gold) && !prediction_relates) return equal(gold.children.back(), prediction);
  // "x in (1, 2)" equals (1, 2).
  if (gold_relates && !is_equation(gold) && is_equation(prediction) &&
      is_collection(prediction.children.back()))
    return equal(gold, prediction.children.back());
  if (is_equation(gold) && is_collection(gold.children.back()) && is_solved(prediction) &&
      !is_equation(prediction))
    return equal(gold.children.back(), prediction);
  if (gold_relates && prediction_relates) return relations(gold, prediction);
  if (gold_relates && !is_equation(gold) && is_collection(prediction)) {
    if (prediction.kind == Kind::List && are_pieces(prediction.children))
      return joins_to(prediction, solution_set(gold, steps_), steps_);
    return relation_with_set(gold, prediction);
  }
  if (gold_relates || prediction_relates) {
    if (gold.kind == Kind::List && are_pieces(gold.children) && prediction_relates)
      return joins_to(gold, solution_set(prediction, steps_), steps_);
    if (is_collection(gold) && prediction_relates) {
      const Verdict verdict = relation_with_set(prediction, gold);
      return verdict == Verdict::Yes && !is_solved(prediction) ? Verdict::Unknown : verdict;
    }
    return Verdict::No;
  }
  if (holds_matrix(gold) || holds_matrix(prediction)) {
    if (is_finite(gold) && is_finite(prediction)) return collections(gold, prediction);
    return matrices(gold, prediction);
  }
  if (is_collection(gold) || is_collection(prediction)) return collections(gold, prediction);
  return scalars(gold, prediction);
}

}  // namespace convoy::answers
