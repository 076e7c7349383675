// SPDX-License-Identifier: Apache-2.0
//
// Deals the items of one step to its micro-batches. Pure functions, equal on every rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace convoy::data {

// The items of each slot, in their order. Item u goes to slot u mod slots.
std::vector<std::vector<size_t>> assign_in_turn(size_t num_items, size_t slots);

// Deals by the sizes of the items: the largest remaining one goes to the slot with the fewest
// tokens. No slot takes more items than dealing in turn would give one, and none is empty when
// there are enough items. Slots are then ordered so that the slots of each rank, every R-th for R
// ranks, have nearly equal totals for any R.
std::vector<std::vector<size_t>> assign_by_tokens(const std::vector<int64_t>& item_tokens,
                                                  size_t slots);

}  // namespace convoy::data
