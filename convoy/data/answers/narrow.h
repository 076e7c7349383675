// SPDX-License-Identifier: Apache-2.0
//
// Full-width letters, digits and signs, as Chinese and Japanese texts have them, in ASCII.
#pragma once

#include <string>
#include <string_view>

namespace convoy::answers {

// The full-width comma, colon and semicolon stay: they separate, and group no digits.
std::string narrowed(std::string_view text);

}  // namespace convoy::answers
