// SPDX-License-Identifier: Apache-2.0
//
// Compares a generated answer with its reference.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace convoy::evaluate {

// True when they are equal after trimming white space on both sides.
bool exact_match(std::string_view pred, std::string_view ref);

// The final number of an answer: the last one after the last "####", else the last in the text.
// Ignores thousands separators, a leading '$' and a trailing '.'; the result is a plain decimal
// without superfluous zeros.
std::optional<std::string> final_number(std::string_view text);

// True when both have a final number and the numbers are equal.
bool numeric_match(std::string_view pred, std::string_view ref);

}  // namespace convoy::evaluate
