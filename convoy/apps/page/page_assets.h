// SPDX-License-Identifier: Apache-2.0
//
// The page itself, from assets/, built into the program.
#pragma once

#include <string>
#include <string_view>

namespace convoy::page {

// One document, including its style and program. `nonce`: marks both for a Content-Security-Policy.
std::string page_html(std::string_view nonce);

}  // namespace convoy::page
