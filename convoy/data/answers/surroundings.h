// SPDX-License-Identifier: Apache-2.0
//
// Separates an answer from the conditions behind it and the derivation before it.
#pragma once

#include <string>
#include <vector>

#include "convoy/data/answers/tokens.h"

namespace convoy::answers {

// Returns the tokens of the answer alone. Appends each condition to `conditions` in a canonical
// spelling: "k:Z" for "(k in Z)" and "where k is an integer"; any other condition as its tokens,
// such as "k>=0".
std::vector<Token> without_surroundings(std::vector<Token> tokens,
                                        std::vector<std::string>& conditions);

}  // namespace convoy::answers
