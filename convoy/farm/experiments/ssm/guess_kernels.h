// SPDX-License-Identifier: Apache-2.0
//
// The inner loop of guess-and-check on `ssm`: power sums of sixteen guesses, whose normals are made
// and used in registers (guess_loops.inl). There is one table of kernels per instruction set; all
// give the same bits. Thread-safe.
#pragma once

#include <cstdint>

#include "convoy/farm/experiments/random/address_tables.h"
#include "convoy/farm/experiments/random/cpu_level.h"

namespace convoy::experiments {

inline constexpr uint32_t kGroupGuesses = 16;
inline constexpr uint32_t kMaxGuessPower = 16;

// Computes sums[(m - 1) * 16 + g] = sum over slots j of normal(guesses[g], j)^m, in float, for the
// powers m of the kernel. Other rows of `sums` may be overwritten too. `guesses` holds the lower 32
// bits of the indices.
using PowerSums = void (*)(const AddressTables& tables, uint32_t num_slots, const uint32_t* guesses,
                           float* sums);

// Number of table blocks for `num_slots` slots, with one more block that the kernels read but do
// not use.
constexpr uint32_t num_guess_blocks(uint32_t num_slots, Precision precision) {
  return num_slots / (precision == Precision::Exact ? kSlotsPerBlock : kPackedSlotsPerBlock) + 1;
}

// Sets of powers are masks: bit m - 1 stands for power m.
struct GuessKernels {
  // Number of sets of powers that have a loop of their own: every set of powers up to 4, and the
  // sets of all powers up to 6, 8 and 16.
  static constexpr uint32_t kSets = 15 + 3;
  PowerSums sums[2][kSets];  // index [precision][set]
};

// The powers of the cheapest kernel that computes all powers of `mask`. `mask` is not 0.
constexpr uint32_t powers_of_kernel(uint32_t mask) {
  for (const uint32_t all : {6u, 8u})
    if (mask >> 4 != 0 && mask >> all == 0) return (1u << all) - 1;
  return mask >> 4 == 0 ? mask : (1u << kMaxGuessPower) - 1;
}

// The cheapest kernel that computes all powers of `mask`, which is not 0. Throws StateError for a
// level that this machine cannot run.
PowerSums power_sums(CpuLevel level, Precision precision, uint32_t mask);

}  // namespace convoy::experiments
