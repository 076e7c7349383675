// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/answers/narrow.h"

namespace convoy::answers {

std::string narrowed(std::string_view text) {
  constexpr std::string_view kStays = ",:;~";
  std::string narrow;
  narrow.reserve(text.size());
  for (size_t at = 0; at < text.size(); ++at) {
    const auto byte = [&](size_t ahead) {
      return at + ahead < text.size() ? static_cast<unsigned char>(text[at + ahead]) : 0U;
    };
    if (byte(0) == 0xe3 && byte(1) == 0x80 && byte(2) == 0x80) {  // the ideographic space U+3000
      narrow += ' ';
      at += 2;
      continue;
    }
    // U+FF01 to U+FF5E are "!" to "~" in their order.
    if (byte(0) == 0xef && (byte(1) == 0xbc || byte(1) == 0xbd) && byte(2) >= 0x80) {
      const unsigned code = ((byte(1) & 0x3f) << 6 | (byte(2) & 0x3f)) - 0xf00 + 0x20;
      const char letter = static_cast<char>(code);
      if (code >= 0x21 && code <= 0x7e && kStays.find(letter) == std::string_view::npos) {
        narrow += letter;
        at += 2;
        continue;
      }
    }
    narrow += text[at];
  }
  return narrow;
}

}  // namespace convoy::answers
