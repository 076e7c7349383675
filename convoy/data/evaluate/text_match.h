// SPDX-License-Identifier: Apache-2.0
//
// Compares a generated answer with its reference.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace convoy::evaluate {

// True when the texts are equal after trimming white space at both ends.
bool exact_match(std::string_view pred, std::string_view ref);

// The final number of an answer: the last number behind the last "####", or else the last number of
// the text. Ignores thousands separators, a leading '$' and a trailing '.'. The result is a plain
// decimal without superfluous zeros.
std::optional<std::string> final_number(std::string_view text);

// True when both texts have a final number and these numbers are equal.
bool numeric_match(std::string_view pred, std::string_view ref);

}  // namespace convoy::evaluate
