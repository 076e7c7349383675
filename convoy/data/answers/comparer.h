// SPDX-License-Identifier: Apache-2.0
//
// Compares two parsed answers. The order of the arguments matters: the reference comes first.
#pragma once

#include "convoy/data/answers/equivalence.h"
#include "convoy/data/answers/node.h"
#include "convoy/data/answers/steps.h"

namespace convoy::answers {

class Comparer {
 public:
  Comparer(const CheckLimits& limits, Steps& steps) : limits_(limits), steps_(steps) {}

  Verdict equal(const Node& gold, const Node& prediction);

 private:
  // Defined in compare_structures.cpp:
  Verdict unordered(const std::vector<Node>& gold, const std::vector<Node>& prediction);
  Verdict ordered(const std::vector<Node>& gold, const std::vector<Node>& prediction);
  Verdict tuples(const Node& gold, const Node& prediction);
  Verdict collections(const Node& gold, const Node& prediction);
  Verdict matrices(const Node& gold, const Node& prediction);
  Verdict pieces(const Node& gold, const Node& prediction);

  // Defined in compare_relations.cpp:
  Verdict relations(const Node& gold, const Node& prediction);
  Verdict links(const Node& gold, const Node& prediction);
  Verdict relation_with_set(const Node& relation, const Node& set);

  // Defined in compare_congruences.cpp:
  Verdict congruences(const Node& gold, const Node& prediction);
  Verdict remainder(const Node& congruence, const Node& number);

  // Defined in compare_scalars.cpp:
  Verdict scalars(const Node& gold, const Node& prediction);
  Verdict quantities(const Node& gold, const Node& prediction);
  Verdict values(const Node& gold, const Node& prediction);
  Verdict at_points(const Node& gold, const Node& prediction);
  Verdict based(const Node& gold, const Node& prediction);
  Verdict ratios(const Node& gold, const Node& prediction);

  const CheckLimits& limits_;
  Steps& steps_;
};

// True for 3 mod 7 and x = (3 mod 7), which may mean the number 3 or, like 3 (mod 7), a residue
// class.
bool is_remainder(const Node& node);
// 3 mod 7 as the congruence 3 (mod 7); any other node unchanged.
Node as_congruence(const Node& node);

// True for a congruence, and for a list that contains one.
bool holds_congruence(const Node& node);

// True for a relation whose signs are all =, ~ or "in".
bool is_equation(const Node& node);
bool is_inequality(const Node& node);  // a relation with any other sign
// True for an equation that assigns a value: x = 5, f(2) = 5, (x, y) = (1, 2), AB = 4.
bool is_assignment(const Node& node);

// True for an inequality that bounds its one name: x > 2, 1 <= x < 3.
bool is_solved(const Node& node);

Verdict both(Verdict a, Verdict b);    // the verdict on two conditions that must both hold
Verdict either(Verdict a, Verdict b);  // the verdict on two conditions of which one is enough

}  // namespace convoy::answers
