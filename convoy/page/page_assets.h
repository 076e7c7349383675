// SPDX-License-Identifier: Apache-2.0
//
// The page itself, from assets/: built into the program.
#pragma once

#include <string_view>

namespace convoy::page {

std::string_view page_html();  // one document, with its style and program inside

}  // namespace convoy::page
