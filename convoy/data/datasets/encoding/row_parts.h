// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace convoy::data {

// Returns the part of each row. Parts are consecutive ranges of a seeded shuffle of all rows: the
// first range is part 0, and so on. `sizes` must sum to the number of rows; at most 255 parts.
// Takes 9 bytes per row.
std::vector<uint8_t> parts_of_rows(const std::vector<int64_t>& sizes, uint64_t seed);

}  // namespace convoy::data
