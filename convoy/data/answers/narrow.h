// SPDX-License-Identifier: Apache-2.0
//
// Converts full-width letters, digits and signs, which Chinese and Japanese texts use, to ASCII.
#pragma once

#include <string>
#include <string_view>

namespace convoy::answers {

// The full-width comma, colon and semicolon are not converted: they separate elements and never
// group digits.
std::string narrowed(std::string_view text);

}  // namespace convoy::answers
