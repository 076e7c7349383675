// SPDX-License-Identifier: Apache-2.0
//
// Sums of losses on a GPU. They are integers, so the order of the additions does not change them.
#pragma once

#include "convoy/farm/experiments/cuda/launch_parts.h"
#include "convoy/machine/nvidia/device_functions.cuh"

namespace convoy::experiments::cuda {

// Adds to `sums` the digits, to the base 2^32, of `value` in units of 2^-40, rounded to even; 0 <=
// value < 2^56.
CONVOY_DEVICE void add_digits(uint64_t (&sums)[3], double value) {
  const double units = __builtin_rint(value * 0x1p40);
  const double upper = __builtin_floor(units * 0x1p-64);
  const auto lower = static_cast<uint64_t>(units - upper * 0x1p64);  // exact
  sums[0] += lower & 0xFFFFFFFFu;
  sums[1] += lower >> 32;
  sums[2] += static_cast<uint64_t>(upper);
}

CONVOY_DEVICE void add_loss(LossSums& sums, double loss) {
  // Largest term that FixedSum holds, as in Tally::accept().
  constexpr double kLargestTerm = 0x1p40;
  ++sums.accepted;
  if (!(loss < kLargestTerm)) {
    ++sums.non_finite;
    return;
  }
  const double squared = loss * loss;
  add_digits(sums.loss, loss);
  add_digits(sums.loss_squared, squared < kLargestTerm ? squared : kLargestTerm);
}

// Adds a thread's sums to one of the kSumSlots shared sums.
CONVOY_DEVICE void share_sums(LossSums* all, const LossSums& own) {
  LossSums& shared = all[nvidia::block_number() % kSumSlots];
  nvidia::atomic_add(&shared.accepted, own.accepted);
  if (own.non_finite > 0) nvidia::atomic_add(&shared.non_finite, own.non_finite);
#pragma unroll
  for (uint32_t digit = 0; digit < 3; ++digit) {
    nvidia::atomic_add(&shared.loss[digit], own.loss[digit]);
    nvidia::atomic_add(&shared.loss_squared[digit], own.loss_squared[digit]);
  }
}

}  // namespace convoy::experiments::cuda
