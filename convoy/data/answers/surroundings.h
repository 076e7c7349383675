// SPDX-License-Identifier: Apache-2.0
//
// Separates an answer from the conditions behind it and the derivation before it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "convoy/data/answers/tokens.h"

namespace convoy::answers {

// First character of a condition that the other answer must tell too: one in brackets, such as
// "5 (n even)", and one with further cases, "5 if n is even, 3 if n is odd".
constexpr char kNeeded = '(';

// True for a word that introduces a condition: "if", "where". `low`: in lower case.
bool introduces_condition(std::string_view low);

// Returns the tokens of the answer alone. Appends each condition to `conditions` in a canonical
// spelling: "k:Z" for "(k in Z)" and "where k is an integer", "k:Z,k>2" for "where k > 2 is an
// integer"; any other condition as its tokens, such as "k>=0".
std::vector<Token> without_surroundings(std::vector<Token> tokens,
                                        std::vector<std::string>& conditions);

}  // namespace convoy::answers
