// SPDX-License-Identifier: Apache-2.0
//
// Trims the ends of a text.
#pragma once

#include <string_view>

namespace convoy {

// Returns the part from the first to the last byte that is not in `outside`: a view into `text`.
inline std::string_view trimmed(std::string_view text, std::string_view outside) {
  const size_t first = text.find_first_not_of(outside);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(outside) - first + 1);
}

}  // namespace convoy
