// SPDX-License-Identifier: Apache-2.0
//
// The data that kernels of every kind of guess exchange with the host: plain structs of the same
// layout on both sides.
#pragma once

#include <stdint.h>

namespace convoy::experiments::cuda {

inline constexpr uint32_t kBlockThreads = 128;
// Threads add to one of these, so that few wait for each other.
inline constexpr uint32_t kSumSlots = 64;

// BlockWords in 32 bits: one load.
struct alignas(16) SlotWords {
  uint32_t first = 0, third = 0, fourth = 0, unused = 0;
};

// Losses of accepted guesses, in units of 2^-40 (FixedSum): sums of the digits of each loss to the
// base 2^32, lowest first. Good for 2^32 guesses.
struct LossSums {
  uint64_t accepted = 0;
  uint64_t non_finite = 0;
  uint64_t loss[3] = {};
  uint64_t loss_squared[3] = {};
};

static_assert(sizeof(LossSums) == 64 && sizeof(SlotWords) == 16);

}  // namespace convoy::experiments::cuda
