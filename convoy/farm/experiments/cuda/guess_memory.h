// SPDX-License-Identifier: Apache-2.0
//
// GPU memory that every kind of guess needs: the words of slots, and the sums of losses. The
// functions throw what Driver::check() throws.
#pragma once

#include "convoy/farm/experiments/cuda/device.h"
#include "convoy/farm/experiments/random/address_tables.h"
#include "convoy/farm/sweep/workload.h"

namespace convoy::experiments::cuda {

// The most guesses of one launch.
inline constexpr uint32_t kMostGuesses = 1u << 24;

// Writes the SlotWords of the tables' blocks into `slots`.
void write_slots(const DeviceUse& use, const Buffer& slots, const AddressTables& tables);
// Adds the sums that the kernels made to `tally`. `sums` holds kSumSlots entries of LossSums.
// Blocks until the kernels are done.
void add_to_tally(const DeviceUse& use, const Buffer& sums, sweep::Tally& tally);

}  // namespace convoy::experiments::cuda
