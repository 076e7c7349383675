// SPDX-License-Identifier: Apache-2.0
//
// Compares answers with a parameter. The k of "k pi, k in Z" may be any letter, and another formula
// may have the same values.
#pragma once

#include <string>
#include <vector>

#include "convoy/data/answers/equivalence.h"
#include "convoy/data/answers/node.h"
#include "convoy/data/answers/steps.h"

namespace convoy::answers {

// An answer and the conditions on its symbols, as parse_answer() returns them.
struct Conditioned {
  const Node& node;
  const std::vector<std::string>& conditions;
};

// `verdict`: the result of comparing the answers with their letters unchanged. Returns Yes only if
// formula and conditions agree, either unchanged or after a renaming of the letters.
Verdict with_parameters(const Conditioned& gold, const Conditioned& prediction, Verdict verdict,
                        const CheckLimits& limits, Steps& steps);

}  // namespace convoy::answers
