// SPDX-License-Identifier: Apache-2.0
//
// Numbers of threads of the ops' kernels, for host and device.
#pragma once

#include <stdint.h>

namespace convoy::kernels::gpu {

inline constexpr uint32_t kBlockThreads = 256;
inline constexpr uint32_t kWarpThreads = 32;
inline constexpr uint32_t kBlockWarps = kBlockThreads / kWarpThreads;

// The longest row that a warp computes alone; a block computes longer ones. A warp takes 2 KiB of
// bf16 in four loads.
inline constexpr uint64_t kLongestWarpRow = 1024;

inline uint64_t blocks_for_rows(uint64_t rows, uint64_t width) {
  return width <= kLongestWarpRow ? (rows + kBlockWarps - 1) / kBlockWarps : rows;
}

}  // namespace convoy::kernels::gpu
