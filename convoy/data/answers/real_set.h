// SPDX-License-Identifier: Apache-2.0
//
// Sets of real numbers as pieces of the line, for unions and complements in any spelling.
#pragma once

#include <optional>
#include <vector>

#include "convoy/data/answers/node.h"
#include "convoy/data/answers/number.h"
#include "convoy/data/answers/steps.h"

namespace convoy::answers {

// From `low` to `high`; a single point has both equal and closed.
struct Piece {
  Number low;
  Number high;
  bool low_open = false;
  bool high_open = false;
};

// Sorted, apart from each other.
using RealSet = std::vector<Piece>;

// Empty when the node is no such set: symbols in the bounds, a set of tuples.
std::optional<RealSet> real_set(const Node& node, Steps& steps);
// Solves a chain of comparisons that are linear in one symbol, such as 1 < 2x + 1 <= 5.
std::optional<RealSet> solution_set(const Node& relation, Steps& steps);

RealSet united(RealSet a, const RealSet& b);
RealSet complement(const RealSet& set);
RealSet intersected(const RealSet& a, const RealSet& b);
Same same(const RealSet& a, const RealSet& b);

}  // namespace convoy::answers
