// SPDX-License-Identifier: Apache-2.0
//
// Sets of real numbers as lists of intervals, so that sets can be compared however they are
// written.
#pragma once

#include <optional>
#include <vector>

#include "convoy/data/answers/node.h"
#include "convoy/data/answers/number.h"
#include "convoy/data/answers/steps.h"

namespace convoy::answers {

// The interval from `low` to `high`. A single point has equal, closed ends.
struct Piece {
  Number low;
  Number high;
  bool low_open = false;
  bool high_open = false;
};

// Sorted; no two pieces overlap or touch.
using RealSet = std::vector<Piece>;

// The set that a node describes. Empty when it is not a set of real numbers with constant bounds.
std::optional<RealSet> real_set(const Node& node, Steps& steps);
// Solves a chain of comparisons that are linear in one symbol, such as 1 < 2x + 1 <= 5.
std::optional<RealSet> solution_set(const Node& relation, Steps& steps);

RealSet united(RealSet a, const RealSet& b);
RealSet complement(const RealSet& set);
RealSet intersected(const RealSet& a, const RealSet& b);
Same same(const RealSet& a, const RealSet& b);

}  // namespace convoy::answers
