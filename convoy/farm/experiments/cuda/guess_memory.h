// SPDX-License-Identifier: Apache-2.0
//
// Memory of a GPU that every kind of guess needs: the words of slots, and the sums of losses.
// Throws what Driver::check does.
#pragma once

#include "convoy/farm/experiments/cuda/device.h"
#include "convoy/farm/experiments/random/address_tables.h"
#include "convoy/farm/sweep/workload.h"

namespace convoy::experiments::cuda {

// Guesses of one launch at most.
inline constexpr uint32_t kMostGuesses = 1u << 24;

// SlotWords of the tables' blocks.
void write_slots(const DeviceUse& use, const Buffer& slots, const AddressTables& tables);
// Adds what kernels added to `sums`, kSumSlots of LossSums. Blocks until they are done.
void add_to_tally(const DeviceUse& use, const Buffer& sums, sweep::Tally& tally);

}  // namespace convoy::experiments::cuda
