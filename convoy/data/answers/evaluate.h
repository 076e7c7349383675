// SPDX-License-Identifier: Apache-2.0
//
// The value of an expression, at a point if it has symbols.
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
  // When set, the root of a negative number is undefined: sqrt(x) sqrt(y) equals sqrt(xy) where all
  // three are real.
  bool reals_only = false;
};

// Undefined when the node is no expression (a set, a relation), or has no value there.
Number evaluate(const Node& node, const Point& point, Steps& steps);

void collect_symbols(const Node& node, std::set<std::string>& into);
std::set<std::string> symbols_of(const Node& node);  // symbols with a name
bool contains_constant(const Node& node, std::string_view name);

constexpr int kSamplePoints = 24;
// The same points for every check. Each group of four has two points of positive reals, one of
// both signs, and one of small whole numbers.
Point sample_point(const std::set<std::string>& symbols, int index, bool reals_only);

}  // namespace convoy::answers
