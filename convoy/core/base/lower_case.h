// SPDX-License-Identifier: Apache-2.0
//
// Lowers ASCII letters in any locale; other bytes stay unchanged.
#pragma once

#include <string>

namespace convoy {

inline char lower_case(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

inline std::string lower_case(std::string text) {
  for (char& letter : text) letter = lower_case(letter);
  return text;
}

}  // namespace convoy
