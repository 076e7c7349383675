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
  std::optional<Node> node = {};  // none: not understood
  // "k:Z", "k>=0": conditions on the symbols, beside the answer.
  std::vector<std::string> conditions = {};
  bool divides_product = false;  // 1/2x was read: what is below the line has two readings
};

// `wide_divisor`: 1/2x is 1/(2x), sin x/2 is sin(x/2); otherwise the rest is a factor of the whole.
Parsed parse_answer(std::vector<Token> tokens, bool wide_divisor, Steps& steps);

}  // namespace convoy::answers
