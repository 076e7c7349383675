// SPDX-License-Identifier: Apache-2.0
//
// Numbers of threads of the ops' kernels, for host and device.
#pragma once

#include <stdint.h>

namespace convoy::kernels::gpu {

inline constexpr uint32_t kBlockThreads = 256;
inline constexpr uint32_t kWarpThreads = 32;
inline constexpr uint32_t kBlockWarps = kBlockThreads / kWarpThreads;

// Rows up to here are a warp's work, longer ones a block's: a warp takes 2 KiB of bf16 in four
// loads.
inline constexpr uint64_t kLongestWarpRow = 1024;

inline uint64_t blocks_for_rows(uint64_t rows, uint64_t width) {
  return width <= kLongestWarpRow ? (rows + kBlockWarps - 1) / kBlockWarps : rows;
}

}  // namespace convoy::kernels::gpu
