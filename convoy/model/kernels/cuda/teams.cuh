// SPDX-License-Identifier: Apache-2.0
//
// Threads that work on one row together. Sums are made by shuffles within a warp, then through
// shared memory in the order of warps, so they repeat bit for bit.
#pragma once

#include "convoy/machine/nvidia/device_functions.cuh"
#include "convoy/model/kernels/cuda/block_shape.h"

namespace convoy::kernels::gpu {

using nvidia::thread_of_block;
using nvidia::wait_for_block;

CONVOY_DEVICE float from_lane_across(float value, int distance) {
  return __nvvm_shfl_sync_bfly_f32(~0u, value, distance, kWarpThreads - 1);
}
CONVOY_DEVICE int from_lane_across(int value, int distance) {
  return __nvvm_shfl_sync_bfly_i32(~0u, value, distance, kWarpThreads - 1);
}

// `value` of the warp's lane `lane`.
CONVOY_DEVICE float from_lane(float value, uint32_t lane) {
  return __nvvm_shfl_sync_idx_f32(~0u, value, static_cast<int>(lane), kWarpThreads - 1);
}

// `value.join(other)` over the lanes of a warp; all get the result. `Value` needs a member
// across(distance), its value in another lane.
template <class Value>
CONVOY_DEVICE Value joined_over_warp(Value value) {
  for (int distance = kWarpThreads / 2; distance > 0; distance /= 2)
    value.join(value.across(distance));
  return value;
}

struct Sum {
  float value;

  CONVOY_DEVICE void join(const Sum& other) { value += other.value; }
  CONVOY_DEVICE Sum across(int distance) const { return {from_lane_across(value, distance)}; }
};

struct WarpTeam {
  static constexpr uint32_t kThreads = kWarpThreads;
  CONVOY_DEVICE static uint32_t thread() { return thread_of_block() % kWarpThreads; }
  CONVOY_DEVICE static uint64_t first_row() { return nvidia::thread_number() / kWarpThreads; }
  CONVOY_DEVICE static uint64_t row_step() { return nvidia::num_threads() / kWarpThreads; }

  template <class Value>
  CONVOY_DEVICE static Value joined(Value value) {
    return joined_over_warp(value);
  }
};

// All threads of the block go through the same rows, and call joined() together.
struct BlockTeam {
  static constexpr uint32_t kThreads = kBlockThreads;
  CONVOY_DEVICE static uint32_t thread() { return thread_of_block(); }
  CONVOY_DEVICE static uint64_t first_row() { return nvidia::block_number(); }
  CONVOY_DEVICE static uint64_t row_step() { return nvidia::num_blocks(); }

  template <class Value>
  CONVOY_DEVICE static Value joined(Value value) {
    CONVOY_SHARED Value of_warps[kBlockWarps];
    value = joined_over_warp(value);
    if (thread() % kWarpThreads == 0) of_warps[thread() / kWarpThreads] = value;
    wait_for_block();
    value = of_warps[0];
    for (uint32_t warp = 1; warp < kBlockWarps; ++warp) value.join(of_warps[warp]);
    wait_for_block();  // before the next call overwrites of_warps
    return value;
  }
};

}  // namespace convoy::kernels::gpu
