// SPDX-License-Identifier: Apache-2.0
//
// The data that the host and the kernels of guess_kernels.cu exchange: plain structs of the same
// layout on both sides. Pointers are addresses on the GPU.
#pragma once

#include <stdint.h>

#include "convoy/farm/experiments/cuda/launch_parts.h"
#include "convoy/farm/experiments/random/address_constants.h"

namespace convoy::experiments::cuda {

inline constexpr uint32_t kLaunchPowers = 16;  // equal to kMaxGuessPower

struct GuessLaunch {
  AddressConstants address;
  const SlotWords* slots = nullptr;
  uint32_t num_slots = 0;

  uint32_t first_guess = 0;  // lower 32 bits of the first guess's index
  uint32_t num_guesses = 0;

  uint32_t tested = 0;  // bit m - 1 is set if power m is in the training loss
  uint32_t num_powers = 0;
  uint32_t num_rows = 0;
  double scales[kLaunchPowers] = {};
  double targets[kLaunchPowers] = {};
  const double* rows = nullptr;  // kLaunchPowers numbers per row
  double divisor = 1;
  double eps_train = 0;

  uint32_t* accepted = nullptr;      // lower 32 bits of indices; room for num_guesses
  uint32_t* num_accepted = nullptr;  // must be 0 before ssm_test_*
  LossSums* sums = nullptr;          // array of kSumSlots
};

// Both compilers must agree on this size.
static_assert(sizeof(GuessLaunch) == 528);

}  // namespace convoy::experiments::cuda
