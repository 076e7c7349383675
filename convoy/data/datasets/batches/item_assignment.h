// SPDX-License-Identifier: Apache-2.0
//
// Deals the items of one step to its micro-batches. Pure functions, equal on every rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace convoy::data {

// Returns the items of each slot, in their order: item u goes to slot u mod slots.
std::vector<std::vector<size_t>> assign_in_turn(size_t num_items, size_t slots);

// Returns the items of each slot, dealt by their sizes: the largest remaining item goes to the slot
// with the fewest tokens. No slot gets more items than by assign_in_turn(), and no slot is empty
// when there are enough items. The slots are then ordered so that the slots of each rank (every
// R-th slot for R ranks) have nearly equal totals for any R.
std::vector<std::vector<size_t>> assign_by_tokens(const std::vector<int64_t>& item_tokens,
                                                  size_t slots);

}  // namespace convoy::data
