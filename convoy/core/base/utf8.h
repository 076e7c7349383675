// SPDX-License-Identifier: Apache-2.0
//
// Checks and cuts UTF-8 text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace convoy {

// Byte offset of the first ill-formed sequence (Unicode 15, table 3-7: no overlong forms, no
// surrogates); empty when there is none.
std::optional<size_t> find_invalid_utf8(std::string_view text);

// Keeps the first `max_characters` code points of valid UTF-8. Returns true when anything was cut.
bool cut_to_characters(std::string& text, size_t max_characters);

// Code points of valid UTF-8.
int64_t count_characters(std::string_view text);

// Whether the byte lies within a character, behind its first byte.
constexpr bool continues_character(char byte) {
  return (static_cast<uint8_t>(byte) & 0xc0) == 0x80;
}

// The greatest number of bytes up to `max_bytes` that contains only whole characters of valid
// UTF-8.
size_t whole_characters_bytes(std::string_view text, size_t max_bytes);

}  // namespace convoy
