// SPDX-License-Identifier: Apache-2.0
//
// Characters of UTF-8 text as in Python's str, by the Unicode of the Rust library. No locale. A
// byte that is not UTF-8 counts as one character without a class.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::evaluate {

// A character and its length in bytes.
struct CharacterAt {
  char32_t code = 0;
  size_t length = 1;
};
CharacterAt character_at(std::string_view text, size_t at);

bool is_letter_or_number(char32_t code);  // str.isalnum()
bool is_mark(char32_t code);              // accents and vowel signs that follow a letter
bool is_space(char32_t code);             // str.isspace()
// True for scripts without spaces between words: Han, Hiragana, Katakana, Bopomofo.
bool is_unspaced(char32_t code);

std::string lowered(std::string_view text);      // str.lower()
std::string case_folded(std::string_view text);  // str.casefold()

std::string_view trimmed(std::string_view text);                   // str.strip()
std::vector<std::string_view> split_words(std::string_view text);  // str.split(); views into `text`

}  // namespace convoy::evaluate
