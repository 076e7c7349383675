// SPDX-License-Identifier: Apache-2.0
//
// ASCII letters in lower case, whatever the locale; other bytes stay.
#pragma once

#include <string>

namespace convoy {

inline std::string lower_case(std::string text) {
  for (char& letter : text)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return text;
}

}  // namespace convoy
