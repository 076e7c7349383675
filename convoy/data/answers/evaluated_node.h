// SPDX-License-Identifier: Apache-2.0
//
// Evaluates an expression. A point gives its symbols their values.
#pragma once

#include <map>
#include <set>
#include <string>

#include "convoy/data/answers/node.h"
#include "convoy/data/answers/number.h"
#include "convoy/data/answers/steps.h"

namespace convoy::answers {

struct Point {
  std::map<std::string, Number, std::less<>> values = {};
  // True: the root of a negative number is undefined. Then sqrt(x) sqrt(y) equals sqrt(xy) wherever
  // all three are real.
  bool reals_only = false;
};

// The value of `node` at `point`. Undefined when the node is no expression (a set, a relation), or
// has no value at the point.
Number evaluate(const Node& node, const Point& point, Steps& steps);

void collect_symbols(const Node& node, std::set<std::string>& into);
std::set<std::string> symbols_of(const Node& node);  // without the symbol with an empty name
bool contains_constant(const Node& node, std::string_view name);

constexpr int kSamplePoints = 24;
// Sample point number `index`. The points are the same in every check. Each group of four has two
// points of positive reals, one point with both signs, and one of small integers.
Point sample_point(const std::set<std::string>& symbols, int index, bool reals_only);

}  // namespace convoy::answers
