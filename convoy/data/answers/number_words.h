// SPDX-License-Identifier: Apache-2.0
//
// Numbers in words: "twenty-five", "two thirds", "three and a half", "negative three".
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "convoy/data/answers/tokens.h"

namespace convoy::answers {

// The value of "one hundred and five", one word per element, in lower case; empty when the words
// are no integer.
std::optional<int64_t> cardinal(std::span<const std::string> words);

// The tokens, where digits replace the words of the number at the start; empty when they do not
// begin with a number in words.
std::optional<std::vector<Token>> in_digits(std::span<const Token> tokens);

}  // namespace convoy::answers
