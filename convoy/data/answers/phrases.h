// SPDX-License-Identifier: Apache-2.0
//
// Answers in words: "no solution", "infinitely many", "five", "even".
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "convoy/data/answers/node.h"
#include "convoy/data/answers/tokens.h"

namespace convoy::answers {

// Lower case, words with one space between them, no articles; empty when the tokens are not all
// words.
std::optional<std::string> phrase_of(std::span<const Token> tokens);

// Phrases with the same meaning have the same canonical phrase: "dne" -> "does not exist".
std::string canonical_phrase(const std::string& phrase);

bool is_canonical(const std::string& phrase);

// The mathematical meaning of a phrase: "five" is 5, "no solution" the empty set, "all real
// numbers" the line.
std::optional<Node> phrase_node(const std::string& phrase);

// "I do not know": no answer at all.
bool declines(const std::string& phrase);

size_t words_in(std::string_view phrase);

}  // namespace convoy::answers
