// SPDX-License-Identifier: Apache-2.0
//
// How the units of one step are dealt to its micro-batches. Pure functions, equal on every rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace convoy::data {

// The units of each slot, in their order. Unit u goes to slot u mod slots.
std::vector<std::vector<size_t>> deal_in_turn(size_t num_units, size_t slots);

// The same by the sizes of the units: the largest that is left goes to the slot with the fewest
// tokens, which takes no more units than dealing in turn would give one. No slot is empty where
// there is a unit for each. Slots then stand so that those of one rank, which are every R-th for R
// ranks, add up to nearly the same for each, whatever R is.
std::vector<std::vector<size_t>> deal_by_tokens(const std::vector<int64_t>& unit_tokens,
                                                size_t slots);

}  // namespace convoy::data
