// SPDX-License-Identifier: Apache-2.0
//
// Words that a POSIX shell reads back exactly.
#pragma once

#include <string>
#include <string_view>

namespace convoy {

// One shell word with the bytes of `text`. Plain words stay as they are; other words are put in
// single quotes.
std::string shell_word(std::string_view text);

}  // namespace convoy
