// SPDX-License-Identifier: Apache-2.0
//
// The surroundings of an answer: conditions behind it, and the derivation before it.
#pragma once

#include <string>
#include <vector>

#include "convoy/data/answers/tokens.h"

namespace convoy::answers {

// The tokens of the answer alone. `conditions` gets each condition in one spelling: "k:Z" for
// "(k in Z)" and "where k is an integer", else its signs: "k>=0".
std::vector<Token> without_surroundings(std::vector<Token> tokens,
                                        std::vector<std::string>& conditions);

}  // namespace convoy::answers
