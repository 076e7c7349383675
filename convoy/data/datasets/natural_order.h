// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace convoy::data {

// Whether `left` comes before `right` when runs of digits count as numbers: "part-2" before
// "part-10". A strict weak order; names that differ only in leading zeros go by their bytes.
bool comes_before(std::string_view left, std::string_view right);

}  // namespace convoy::data
