// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace convoy::data {

// True when `left` comes before `right` in natural order: "part-2" before "part-10". A strict weak
// order; names that differ only in leading zeros are ordered by their bytes.
bool comes_before(std::string_view left, std::string_view right);

}  // namespace convoy::data
