// SPDX-License-Identifier: Apache-2.0
//
// The inner loop of guess-and-check on `ssm`: power sums of sixteen guesses, with the normals made,
// used and forgotten in registers (guess_loops.inl). One table per instruction set, the same bits
// from each. Thread-safe.
#pragma once

#include <cstdint>

#include "convoy/farm/experiments/random/address_tables.h"
#include "convoy/farm/experiments/random/cpu_level.h"

namespace convoy::experiments {

inline constexpr uint32_t kGroupGuesses = 16;
inline constexpr uint32_t kMaxGuessPower = 16;

// sums[(m - 1) * 16 + g] = sum over slots j of normal(guesses[g], j)^m, float, for the powers m the
// kernel was asked for; other rows may be written too. `guesses` are lower halves of the indices.
using PowerSums = void (*)(const AddressTables& tables, uint32_t num_slots, const uint32_t* guesses,
                           float* sums);

// Number of table blocks for `num_slots` slots, including one that the kernels read but do not use.
constexpr uint32_t num_guess_blocks(uint32_t num_slots, Precision precision) {
  return num_slots / (precision == Precision::Exact ? kSlotsPerBlock : kPackedSlotsPerBlock) + 1;
}

// One power after another, bit m - 1 stands for power m.
struct GuessKernels {
  // Sets of powers that have a loop of their own: every set up to 4, and all powers up to 6, 8, 16.
  static constexpr uint32_t kSets = 15 + 3;
  PowerSums sums[2][kSets];  // [precision][set]
};

// The powers of the cheapest kernel that has all powers of `mask`. `mask` is not 0.
constexpr uint32_t powers_of_kernel(uint32_t mask) {
  for (const uint32_t all : {6u, 8u})
    if (mask >> 4 != 0 && mask >> all == 0) return (1u << all) - 1;
  return mask >> 4 == 0 ? mask : (1u << kMaxGuessPower) - 1;
}

// The cheapest kernel with at least the powers of `mask`, not 0. Throws StateError for a level this
// machine cannot run.
PowerSums power_sums(CpuLevel level, Precision precision, uint32_t mask);

}  // namespace convoy::experiments
