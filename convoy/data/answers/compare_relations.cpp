// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "convoy/data/answers/comparer.h"
#include "convoy/data/answers/evaluated_node.h"
#include "convoy/data/answers/real_set.h"

namespace convoy::answers {
namespace {

bool equates(Comparison comparison) {
  return comparison == Comparison::Equal || comparison == Comparison::About ||
         comparison == Comparison::In;
}

// One comparison of a chain, brought to the form `difference` < 0, <= 0, = 0 or != 0.
struct Link {
  Node difference;
  Comparison comparison = Comparison::Equal;
};

std::vector<Link> links_of(const Node& relation) {
  std::vector<Link> links;
  for (size_t index = 0; index < relation.relations.size(); ++index) {
    const Node* left = &relation.children[index];
    const Node* right = &relation.children[index + 1];
    Comparison comparison = relation.relations[index];
    if (comparison == Comparison::Greater || comparison == Comparison::GreaterEqual) {
      std::swap(left, right);
      comparison = comparison == Comparison::Greater ? Comparison::Less : Comparison::LessEqual;
    }
    links.push_back({make_node(Kind::Sum, {*left, make_node(Kind::Negation, {*right})}),
                     equates(comparison) ? Comparison::Equal : comparison});
  }
  return links;
}

constexpr int kEnoughRelationPoints = 7;

// Yes when a = c b with the same factor c at all points where a and b are sampled. For inequalities
// c must be positive.
Verdict proportional(const Node& a, const Node& b, bool any_sign, Steps& steps) {
  std::set<std::string> symbols;
  collect_symbols(a, symbols);
  collect_symbols(b, symbols);
  Number first_a = undefined_number();
  Number first_b = undefined_number();
  int agreed = 0;
  for (int index = 0; index < kSamplePoints && agreed < kEnoughRelationPoints; ++index) {
    const Point point = sample_point(symbols, index, true);
    const Number at_a = evaluate(a, point, steps);
    const Number at_b = evaluate(b, point, steps);
    if (!at_a.defined || !at_b.defined || !at_a.is_real() || !at_b.is_real()) continue;
    const bool a_is_zero = same(at_a, integer(0)) == Same::Yes;
    const bool b_is_zero = same(at_b, integer(0)) == Same::Yes;
    if (a_is_zero != b_is_zero) return Verdict::No;
    if (a_is_zero) continue;
    if (!any_sign && (at_a.real() > 0) != (at_b.real() > 0)) return Verdict::No;
    if (!first_a.defined) {
      first_a = at_a;
      first_b = at_b;
    } else if (const Same same_ratio = same(multiply(at_a, first_b), multiply(at_b, first_a));
               same_ratio == Same::No) {
      return Verdict::No;
    } else if (same_ratio == Same::Yes) {
      ++agreed;
    }
  }
  return agreed >= (symbols.empty() ? 0 : 1) && !steps.spent() ? Verdict::Yes : Verdict::Unknown;
}

}  // namespace

Verdict both(Verdict a, Verdict b) {
  if (a == Verdict::No || b == Verdict::No) return Verdict::No;
  return a == Verdict::Yes && b == Verdict::Yes ? Verdict::Yes : Verdict::Unknown;
}

Verdict either(Verdict a, Verdict b) {
  if (a == Verdict::Yes || b == Verdict::Yes) return Verdict::Yes;
  return a == Verdict::No && b == Verdict::No ? Verdict::No : Verdict::Unknown;
}

bool is_equation(const Node& node) {
  return node.kind == Kind::Relation &&
         std::all_of(node.relations.begin(), node.relations.end(), equates);
}

bool is_inequality(const Node& node) { return node.kind == Kind::Relation && !is_equation(node); }

bool is_assignment(const Node& node) {
  return is_equation(node) && only_names(node.children.front());
}

Verdict Comparer::links(const Node& gold, const Node& prediction) {
  const std::vector<Link> wanted = links_of(gold);
  std::vector<Link> found = links_of(prediction);
  if (wanted.size() != found.size()) return Verdict::No;
  Verdict all = Verdict::Yes;
  for (const Link& link : wanted) {
    Verdict best = Verdict::No;
    for (size_t index = 0; index < found.size() && best != Verdict::Yes; ++index) {
      if (found[index].comparison != link.comparison) continue;
      const bool any_sign =
          link.comparison == Comparison::Equal || link.comparison == Comparison::NotEqual;
      const Verdict verdict =
          proportional(link.difference, found[index].difference, any_sign, steps_);
      if (verdict == Verdict::Yes) found.erase(found.begin() + static_cast<std::ptrdiff_t>(index));
      if (verdict != Verdict::No) best = verdict;
    }
    all = both(all, best);
  }
  return all;
}

Verdict Comparer::relations(const Node& gold, const Node& prediction) {
  if (is_assignment(gold) && is_assignment(prediction)) {
    // In a chain such as x = 5 + 6 = 11 only the first and the last part count.
    const Verdict names = equal(gold.children.front(), prediction.children.front());
    if (names == Verdict::Yes) {
      const Verdict verdict = equal(gold.children.back(), prediction.children.back());
      if (verdict == Verdict::Yes || is_collection(gold.children.back())) return verdict;
    }
    if (is_collection(gold.children.back())) return Verdict::No;
    const auto ends = [](const Node& chain) {
      Node short_chain = make_node(Kind::Relation, {chain.children.front(), chain.children.back()});
      short_chain.relations = {Comparison::Equal};
      return short_chain;
    };
    return links(ends(gold), ends(prediction));
  }
  if (is_inequality(gold) && is_inequality(prediction)) {
    const Verdict verdict = links(gold, prediction);
    if (verdict == Verdict::Yes) return verdict;
    // The solution sets are compared: 1 < 2x - 1 < 3 and 2 < 2x < 4 are equal, but differ when
    // compared link by link.
    const std::optional<RealSet> wanted = solution_set(gold, steps_);
    const std::optional<RealSet> found = solution_set(prediction, steps_);
    if (wanted && found && same(*wanted, *found) == Same::Yes) return Verdict::Yes;
    return verdict;
  }
  return links(gold, prediction);
}

// True for an inequality with one symbol between constants: x > 2, 1 <= x < 3.
bool is_solved(const Node& relation) {
  if (relation.kind != Kind::Relation) return false;
  int names = 0;
  for (const Node& side : relation.children) {
    std::set<std::string> symbols;
    collect_symbols(side, symbols);
    names += side.kind == Kind::Symbol;
    if (side.kind != Kind::Symbol && !symbols.empty()) return false;
  }
  return names == 1;
}

// Compares an inequality with a set. The reference may be any inequality with this set as its
// solution. A prediction must be solved for its symbol, because another inequality may just repeat
// the question.
Verdict Comparer::relation_with_set(const Node& relation, const Node& set) {
  const std::optional<RealSet> wanted = solution_set(relation, steps_);
  const std::optional<RealSet> found = real_set(set, steps_);
  if (!wanted || !found) return Verdict::Unknown;
  const Same verdict = same(*wanted, *found);
  return verdict == Same::Yes ? Verdict::Yes : verdict == Same::No ? Verdict::No : Verdict::Unknown;
}

}  // namespace convoy::answers
