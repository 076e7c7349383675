// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace convoy {

// The reason in nlohmann's exception text, without its number, place and last bytes, which may be
// ill-formed: "[json.exception.parse_error.101] parse error at line 1, column 3: syntax error while
// parsing value - invalid literal; last read: '{x'" becomes "syntax error while parsing value -
// invalid literal".
std::string json_reason(std::string_view what);

}  // namespace convoy
