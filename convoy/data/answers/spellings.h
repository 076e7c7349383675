// SPDX-License-Identifier: Apache-2.0
//
// The tables of the tokenizer: LaTeX commands, plain words and Unicode characters, and the token
// for each.
#pragma once

#include <string_view>

#include "convoy/data/answers/tokens.h"

namespace convoy::answers {

struct Spelled {
  TokenType type = TokenType::Sign;
  std::string_view text = {};  // empty: dropped like a space, because it only affects the layout
};

// Look up a token by its spelling; nullptr when the table has none. The `name` of a command has no
// backslash.
const Spelled* spelled_command(std::string_view name);
const Spelled* spelled_word(std::string_view word);
// The token of the longest known character sequence at the start of `text`; sets `length` to its
// number of bytes.
const Spelled* spelled_character(std::string_view text, size_t& length);

// The superscript digit, sign or letter at the start of `text` as a plain character: 8 for "⁸", -
// for "⁻"; 0 when there is none.
char raised_character(std::string_view text, size_t& length);

// The number of a circled digit: 3 for "③"; 0 for any other word.
int circled_number(std::string_view word);

bool is_text_command(std::string_view name);  // \text{...}, \mathrm{...}: words or upright letters
bool is_dropped_with_argument(std::string_view name);  // such as \hspace{...}, \tag{...}

}  // namespace convoy::answers
