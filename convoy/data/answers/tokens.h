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
  Sign,      // any other token, by its canonical name: "+", "<=", "\\{", "frac", "begin pmatrix"
  Unknown,   // an unknown command
};

struct Token {
  TokenType type = TokenType::Sign;
  std::string text = {};
  bool space_before = false;
  bool from_text = false;  // from inside \text{} or a similar command
  bool operator==(const Token& other) const { return type == other.type && text == other.text; }
};

inline bool is_sign(const Token& token, std::string_view text) {
  return token.type == TokenType::Sign && token.text == text;
}

// Decides between the two meanings of some spellings.
struct Spelling {
  bool commas_group_digits = true;  // true: 1,234 is one number; false: two
  bool comma_is_point = false;      // true: 3,14 is 3.14
};

struct Tokens {
  std::vector<Token> list = {};
  bool has_grouping_comma = false;  // a comma was read as a thousands separator
  bool may_have_comma_point = false;
};

// Splits the text into tokens as far as `steps` allow. When the budget ends, the rest of the text
// is dropped; `steps` then says so.
Tokens tokenize(std::string_view text, const Spelling& spelling, Steps& steps);

}  // namespace convoy::answers
