// SPDX-License-Identifier: Apache-2.0
//
// The arguments that the host passes to the kernels of rope_cuda.cu. Pointers are addresses on the
// GPU.
#pragma once

#include <stdint.h>

namespace convoy::kernels::gpu {

struct RopeHeads {
  const void* x = nullptr;
  void* y = nullptr;  // contiguous
  uint64_t heads = 0;
  int64_t token_stride = 0;  // between tokens of x, in elements
  int64_t head_stride = 0;
};

struct RopeLaunch {
  RopeHeads parts[2] = {};  // queries and keys; for a single tensor the second has no heads
  const float* cos = nullptr;
  const float* sin = nullptr;
  const int64_t* positions = nullptr;  // per token
  uint64_t tokens = 0;
  uint64_t half = 0;  // half of a head's features
  float direction = 1;
  uint32_t vectors = 0;  // halves may be read and written by vectors
};

}  // namespace convoy::kernels::gpu
