// SPDX-License-Identifier: Apache-2.0
//
// Packing without padding: whole rows into blocks of a fixed token capacity.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace convoy::data {

// Best-fit decreasing: takes the rows by descending length (equal lengths in row order) and puts
// each into the fullest block that can hold it (on ties the oldest block), else into a new block.
// O(n log n), deterministic. Throws ConfigError when a row is longer than a block.
std::vector<std::vector<int64_t>> pack_best_fit_decreasing(std::span<const int64_t> lengths_tokens,
                                                           int64_t block_tokens);

}  // namespace convoy::data
