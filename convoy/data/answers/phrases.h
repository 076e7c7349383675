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

// The words of the tokens in lower case, with one space between them and without articles; empty
// when some token is not a word.
std::optional<std::string> phrase_of(std::span<const Token> tokens);

// Phrases with the same meaning have the same canonical phrase: "dne" -> "does not exist".
std::string canonical_phrase(const std::string& phrase);

bool is_canonical(const std::string& phrase);

// The mathematical meaning of a phrase: "five" is 5, "no solution" is the empty set, "all real
// numbers" is the real line.
std::optional<Node> phrase_node(const std::string& phrase);

// True for a phrase that gives no answer, such as "I do not know".
bool declines(const std::string& phrase);

size_t words_in(std::string_view phrase);

}  // namespace convoy::answers
