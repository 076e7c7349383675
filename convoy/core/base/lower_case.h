// SPDX-License-Identifier: Apache-2.0
//
// Lowers ASCII letters in any locale; other bytes stay unchanged.
#pragma once

#include <string>

namespace convoy {

inline std::string lower_case(std::string text) {
  for (char& letter : text)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return text;
}

}  // namespace convoy
