// SPDX-License-Identifier: Apache-2.0
//
// Checks and cuts UTF-8 text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace convoy::data {

// Byte offset of the first ill-formed sequence (Unicode 15, table 3-7: no overlong forms, no
// surrogates); empty when there is none.
std::optional<size_t> find_invalid_utf8(std::string_view text);

// Keeps the first `max_characters` code points of valid UTF-8. Returns true when anything was cut.
bool cut_to_characters(std::string& text, size_t max_characters);

// Code points of valid UTF-8.
int64_t count_characters(std::string_view text);

}  // namespace convoy::data
