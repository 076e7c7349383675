// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/utf8.h"

#include <algorithm>
#include <cstdint>

namespace convoy {
namespace {

// Length of the well-formed sequence at `at`, or 0.
size_t sequence_length(std::string_view text, size_t at) {
  const auto byte = [&](size_t offset) {
    return at + offset < text.size() ? static_cast<uint8_t>(text[at + offset]) : uint8_t{0};
  };
  const auto continues = [&](size_t offset) {
    return at + offset < text.size() && continues_character(text[at + offset]);
  };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return continues(1) ? 2 : 0;
  if ((lead & 0xf0) == 0xe0) {
    const bool second =
        continues(1) && !(lead == 0xe0 && byte(1) < 0xa0) && !(lead == 0xed && byte(1) > 0x9f);
    return second && continues(2) ? 3 : 0;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    const bool second =
        continues(1) && !(lead == 0xf0 && byte(1) < 0x90) && !(lead == 0xf4 && byte(1) > 0x8f);
    return second && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::optional<size_t> find_invalid_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = sequence_length(text, at);
    if (length == 0) return at;
    at += length;
  }
  return std::nullopt;
}

bool cut_to_characters(std::string& text, size_t max_characters) {
  if (text.size() <= max_characters) return false;
  size_t characters = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (!continues_character(text[at]) && characters++ == max_characters) {
      text.resize(at);
      return true;
    }
  }
  return false;
}

int64_t count_characters(std::string_view text) {
  return std::ssize(text) - std::count_if(text.begin(), text.end(), continues_character);
}

size_t whole_characters_bytes(std::string_view text, size_t max_bytes) {
  size_t end = std::min(text.size(), max_bytes);
  while (end > 0 && end < text.size() && continues_character(text[end])) --end;
  return end;
}

}  // namespace convoy
