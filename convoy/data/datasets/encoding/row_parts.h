// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace convoy::data {

// The part of each row: consecutive ranges of a seeded shuffle of all rows, the first for part 0
// and so on. `sizes` sum to the number of rows; at most 255 parts. Takes 9 bytes per row.
std::vector<uint8_t> parts_of_rows(const std::vector<int64_t>& sizes, uint64_t seed);

}  // namespace convoy::data
