// SPDX-License-Identifier: Apache-2.0
//
// The data that kernels of every kind of guess exchange with the host: plain structs of the same
// layout on both sides.
#pragma once

#include <stdint.h>

namespace convoy::experiments::cuda {

inline constexpr uint32_t kBlockThreads = 128;
// Number of places to which threads add their sums: several, so that few threads wait for each
// other.
inline constexpr uint32_t kSumSlots = 64;

// BlockWords as 32-bit words, so that a thread reads them with one load.
struct alignas(16) SlotWords {
  uint32_t first = 0, third = 0, fourth = 0, unused = 0;
};

// Sums over the losses of accepted guesses. A loss is a whole number of units of 2^-40 (see
// FixedSum) with three digits to the base 2^32; element k is the sum of digit k of all losses, the
// lowest digit first. No sum overflows within 2^32 guesses.
struct LossSums {
  uint64_t accepted = 0;
  uint64_t non_finite = 0;
  uint64_t loss[3] = {};
  uint64_t loss_squared[3] = {};
};

static_assert(sizeof(LossSums) == 64 && sizeof(SlotWords) == 16);

}  // namespace convoy::experiments::cuda
