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

// "one hundred and five" in lower case, one word per element; empty when the words are no whole
// number.
std::optional<int64_t> cardinal(std::span<const std::string> words);

// The tokens with the number at their front replaced by digits; empty when they do not begin with a
// number in words.
std::optional<std::vector<Token>> in_digits(std::span<const Token> tokens);

}  // namespace convoy::answers
