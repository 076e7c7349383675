// SPDX-License-Identifier: Apache-2.0
//
// Whether a generated answer equals its reference.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace convoy::evaluate {

// Equal after trimming white space on both sides.
bool exact_match(std::string_view pred, std::string_view ref);

// The final number of an answer: the last one after the last "####", else the last in the text.
// Thousands separators, a leading '$' and a trailing '.' do not count; the result is a plain
// decimal without superfluous zeros.
std::optional<std::string> final_number(std::string_view text);

// Both have a final number and it is the same.
bool numeric_match(std::string_view pred, std::string_view ref);

}  // namespace convoy::evaluate
