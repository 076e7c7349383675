// SPDX-License-Identifier: Apache-2.0
//
// A whole text as one number.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace convoy {

// Returns nullopt unless the whole text is one decimal number of this type. Blanks, a plus sign and
// numbers out of range are not accepted.
template <class Number>
std::optional<Number> text_as(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

}  // namespace convoy
