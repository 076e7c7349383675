// SPDX-License-Identifier: Apache-2.0
//
// An answer as tokens: LaTeX, plain text and Unicode spellings of the same thing become one token,
// and commands that only set type (\left, \displaystyle, \mathrm, thin spaces) are dropped. Two
// answers with equal tokens are literally equal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/data/answers/steps.h"

namespace convoy::answers {

enum class TokenType {
  Number,    // digits with at most one point, no separators: "1234.5", "1.5e-3"
  Letter,    // one symbol: "x", "alpha", "pi"
  Word,      // a run of two letters or more: "cm", "odd", "xy"
  Function,  // "sin", "log", "max"
  Sign,      // everything else by its canonical name: "+", "<=", "\\{", "frac", "begin pmatrix"
  Unknown,   // a command that is not understood
};

struct Token {
  TokenType type = TokenType::Sign;
  std::string text = {};
  bool space_before = false;
  bool from_text = false;  // stood in \text{} or one of its kin
  bool operator==(const Token& other) const { return type == other.type && text == other.text; }
};

inline bool is_sign(const Token& token, std::string_view text) {
  return token.type == TokenType::Sign && token.text == text;
}

// Choices for spellings that have two meanings.
struct Spelling {
  bool commas_group_digits = true;  // 1,234 is one number, not two
  bool comma_is_point = false;      // 3,14 is 3.14
};

struct Tokens {
  std::vector<Token> list = {};
  bool has_grouping_comma = false;  // a comma was read as a separator of thousands
  bool may_have_comma_point = false;
};

// Reads as far as `steps` allow; the rest of the text is dropped, and `steps` records it.
Tokens tokenize(std::string_view text, const Spelling& spelling, Steps& steps);

}  // namespace convoy::answers
