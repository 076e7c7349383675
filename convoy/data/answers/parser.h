// SPDX-License-Identifier: Apache-2.0
//
// Parses tokens into a tree. Tolerates LaTeX variants: \frac12, missing braces, units, words around
// the answer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "convoy/data/answers/node.h"
#include "convoy/data/answers/steps.h"
#include "convoy/data/answers/tokens.h"

namespace convoy::answers {

struct Parsed {
  std::optional<Node> node = {};  // empty: the tokens were not understood
  // Conditions on the answer's symbols: "k:Z", "k>=0".
  std::vector<std::string> conditions = {};
  bool divides_product = false;  // a text like 1/2x was read, whose divisor is ambiguous
};

// `wide_divisor`: true reads 1/2x as 1/(2x) and sin x/2 as sin(x/2); false as (1/2)x and (sin x)/2.
Parsed parse_answer(std::vector<Token> tokens, bool wide_divisor, Steps& steps);

}  // namespace convoy::answers
