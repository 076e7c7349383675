// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/shell_word.h"

#include <algorithm>
#include <cctype>

namespace convoy {

std::string shell_word(std::string_view text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 ||
           std::string_view("_./-:,+@%=").find(letter) != std::string_view::npos;
  });
  if (plain) return std::string(text);
  std::string word = "'";
  for (const char letter : text) {
    if (letter == '\'') {
      word += "'\\''";
    } else {
      word += letter;
    }
  }
  return word + "'";
}

}  // namespace convoy
