// SPDX-License-Identifier: Apache-2.0
//
// Text of other programs, such as a driver, made safe for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace convoy {

// The text with a question mark in place of each control character: the codes below a space, DEL,
// and U+0080 to U+009F in UTF-8.
inline std::string printable_text(std::string_view text) {
  std::string shown;
  for (size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const bool is_latin_control = byte == 0xc2 && at + 1 < text.size() &&
                                  static_cast<unsigned char>(text[at + 1]) >= 0x80 &&
                                  static_cast<unsigned char>(text[at + 1]) < 0xa0;
    const bool is_control = byte < 0x20 || byte == 0x7f || is_latin_control;
    shown += is_control ? '?' : text[at];
    at += is_latin_control;
  }
  return shown;
}

}  // namespace convoy
