// SPDX-License-Identifier: Apache-2.0
//
// The arguments that the host passes to the kernels of sum_of_squares_cuda.cu. Pointers are
// addresses on the GPU.
#pragma once

#include <stdint.h>

namespace convoy::kernels::gpu {

// The most tensors of one launch, because the arguments of a kernel may take 4 KiB.
inline constexpr uint32_t kSquaresTensors = 160;
// Elements that a block of threads takes at a time.
inline constexpr uint64_t kSquaresChunk = 32'768;

struct SquaresLaunch {
  double* sums = nullptr;  // by chunk
  uint64_t num_tensors = 0;
  const void* values[kSquaresTensors] = {};
  uint64_t counts[kSquaresTensors] = {};
  uint64_t first_chunk[kSquaresTensors + 1] = {};  // by tensor; then the number of chunks
};

static_assert(sizeof(SquaresLaunch) <= 4096);

}  // namespace convoy::kernels::gpu
