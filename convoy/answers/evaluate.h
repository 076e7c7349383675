// SPDX-License-Identifier: Apache-2.0
//
// The value of an expression, at a point where it has symbols.
#pragma once

#include <map>
#include <set>
#include <string>

#include "convoy/answers/node.h"
#include "convoy/answers/number.h"
#include "convoy/answers/steps.h"

namespace convoy::answers {

using Point = std::map<std::string, Number, std::less<>>;

// Not defined where the node is no expression (a set, a relation), or has no value there.
Number evaluate(const Node& node, const Point& point, Steps& steps);

void collect_symbols(const Node& node, std::set<std::string>& into);
bool contains_constant(const Node& node, std::string_view name);

constexpr int kSamplePoints = 8;
// The same for every check: four of positive reals, two of both signs, two of small whole numbers.
Point sample_point(const std::set<std::string>& symbols, int index);

}  // namespace convoy::answers
