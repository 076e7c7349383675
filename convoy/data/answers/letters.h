// SPDX-License-Identifier: Apache-2.0
//
// Tests and changes of single letters and short texts, independent of the locale.
#pragma once

#include <string>
#include <string_view>

namespace convoy::answers {

constexpr bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }
constexpr bool is_upper(char letter) { return letter >= 'A' && letter <= 'Z'; }
constexpr bool is_letter(char letter) {
  return is_upper(letter) || (letter >= 'a' && letter <= 'z');
}
constexpr bool is_space(char letter) { return letter == ' ' || (letter >= '\t' && letter <= '\r'); }
constexpr char lower(char letter) {
  return is_upper(letter) ? static_cast<char>(letter - 'A' + 'a') : letter;
}

// The text in lower case; changes only Latin and Russian letters.
inline std::string lowered(std::string_view text) {
  std::string low(text);
  for (size_t at = 0; at < low.size(); ++at) {
    low[at] = lower(low[at]);
    if (low[at] != '\xd0' || at + 1 == low.size()) continue;
    const auto second = static_cast<unsigned char>(low[++at]);
    if (second >= 0x90 && second <= 0x9f) {  // А to П
      low[at] = static_cast<char>(second + 0x20);
    } else if (second >= 0xa0 && second <= 0xaf) {  // Р to Я
      low[at - 1] = '\xd1';
      low[at] = static_cast<char>(second - 0x20);
    }
  }
  return low;
}

// True for words of scripts other than Latin and Greek.
inline bool is_foreign(std::string_view word) {
  return !word.empty() && static_cast<unsigned char>(word.front()) >= 0xd0;
}

inline bool starts_at(std::string_view text, size_t at, std::string_view what) {
  return at <= text.size() && text.substr(at, what.size()) == what;
}

// True when `word` is in `names`, a text of words with a space before and behind each.
inline bool is_listed(std::string_view names, std::string_view word) {
  if (word.empty()) return false;
  for (size_t at = names.find(word); at != std::string_view::npos; at = names.find(word, at + 1))
    if (at > 0 && names[at - 1] == ' ' && at + word.size() < names.size() &&
        names[at + word.size()] == ' ')
      return true;
  return false;
}

inline std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace convoy::answers
