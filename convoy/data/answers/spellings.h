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
  std::string_view text = {};  // empty: it only sets type, as a space would
};

// Null when the table has none. `name` of a command is without the backslash.
const Spelled* spelled_command(std::string_view name);
const Spelled* spelled_word(std::string_view word);
// The longest character sequence at the start of `text`; `length` is set to its bytes.
const Spelled* spelled_character(std::string_view text, size_t& length);

// The raised digit, sign or letter at the start of `text`: 8 for "⁸", - for "⁻"; 0 when there is
// none.
char raised_character(std::string_view text, size_t& length);

// 3 for "③"; 0 for another word.
int circled_number(std::string_view word);

bool is_text_command(std::string_view name);  // \text{...}, \mathrm{...}: words, or upright letters
bool is_dropped_with_argument(std::string_view name);  // \hspace{...}, \tag{...}

}  // namespace convoy::answers
