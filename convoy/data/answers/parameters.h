// SPDX-License-Identifier: Apache-2.0
//
// Answers with a parameter: the k of "k pi, k in Z" may have any letter, and another formula may
// have the same values.
#pragma once

#include <string>
#include <vector>

#include "convoy/data/answers/equivalence.h"
#include "convoy/data/answers/node.h"
#include "convoy/data/answers/steps.h"

namespace convoy::answers {

// An answer and what is said of its symbols, as parse_answer() gives them.
struct Conditioned {
  const Node& node;
  const std::vector<std::string>& conditions;
};

// `verdict`: the comparison of the answers with their letters as they stand. Yes only if the
// letters, or one renaming of them, agree in formula and conditions.
Verdict with_parameters(const Conditioned& gold, const Conditioned& prediction, Verdict verdict,
                        const CheckLimits& limits, Steps& steps);

}  // namespace convoy::answers
