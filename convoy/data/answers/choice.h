// SPDX-License-Identifier: Apache-2.0
//
// Answers to multiple-choice questions: "B", "(B)", "B) 42", "option B", "A, C".
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "convoy/data/answers/equivalence.h"
#include "convoy/data/answers/tokens.h"

namespace convoy::answers {

// Compares two answers by the letters of their options; empty when the letters decide nothing.
std::optional<Verdict> compare_choices(std::span<const Token> gold,
                                       std::span<const Token> prediction);

// True when the answer is the letter of an option and nothing else.
bool is_choice(std::span<const Token> tokens);

// The letter of the option, whether a text follows it or not; 0 when the answer is no option.
char letter_of_choice(std::span<const Token> tokens);

// The tokens of the text behind the option's letter: 42 of "(B) 42". Empty when the answer is not a
// letter with a text.
std::vector<Token> text_of_choice(std::span<const Token> tokens);

}  // namespace convoy::answers
