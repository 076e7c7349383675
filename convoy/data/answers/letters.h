// SPDX-License-Identifier: Apache-2.0
//
// ASCII classes, independent of the locale.
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

inline std::string lowered(std::string_view text) {
  std::string low(text);
  for (char& letter : low) letter = lower(letter);
  return low;
}

inline std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace convoy::answers
