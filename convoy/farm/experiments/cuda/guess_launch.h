// SPDX-License-Identifier: Apache-2.0
//
// The data that the host and the kernels of guess_kernels.cu exchange: plain structs of the same
// layout on both sides. Pointers are addresses on the GPU.
#pragma once

#include <stdint.h>

#include "convoy/farm/experiments/random/address_constants.h"

namespace convoy::experiments::cuda {

inline constexpr uint32_t kLaunchPowers = 16;  // kMaxGuessPower
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

struct GuessLaunch {
  AddressConstants address;
  const SlotWords* slots = nullptr;
  uint32_t num_slots = 0;

  uint32_t first_guess = 0;  // lower half of its index
  uint32_t num_guesses = 0;

  uint32_t tested = 0;  // bit m - 1: power m is in the training loss
  uint32_t num_powers = 0;
  uint32_t num_rows = 0;
  double scales[kLaunchPowers] = {};
  double targets[kLaunchPowers] = {};
  const double* rows = nullptr;  // kLaunchPowers each
  double divisor = 1;
  double eps_train = 0;

  uint32_t* accepted = nullptr;      // lower halves; room for num_guesses
  uint32_t* num_accepted = nullptr;  // 0 before the test
  LossSums* sums = nullptr;          // kSumSlots
};

// The host's compiler and NVRTC must agree on these sizes.
static_assert(sizeof(GuessLaunch) == 528 && sizeof(LossSums) == 64 && sizeof(SlotWords) == 16);

}  // namespace convoy::experiments::cuda
