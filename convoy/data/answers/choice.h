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

// Compares by the letters; empty when they do not decide.
std::optional<Verdict> compare_choices(std::span<const Token> gold,
                                       std::span<const Token> prediction);

// A letter of an option and nothing else.
bool is_choice(std::span<const Token> tokens);

// The letter of an option, with or without a text; 0 where there is none.
char letter_of_choice(std::span<const Token> tokens);

// The 42 in "(B) 42"; empty when the answer is no letter with a text.
std::vector<Token> text_of_choice(std::span<const Token> tokens);

}  // namespace convoy::answers
