// SPDX-License-Identifier: Apache-2.0
//
// The arguments that the host passes to the kernels of grouped_codes_cuda.cu. Pointers are
// addresses on the GPU.
#pragma once

#include <stdint.h>

namespace convoy::kernels::gpu {

struct DecodeGroupsLaunch {
  const uint32_t* words = nullptr;   // [outputs, row_words]
  const uint32_t* scales = nullptr;  // [outputs, groups]: scale in the lower half, offset above
  void* values = nullptr;            // [outputs, inputs]
  uint64_t count = 0;
  uint64_t num_vectors = 0;  // vectors of 16 bytes of values, from the first on
  uint64_t inputs = 0;
  uint64_t row_words = 0;
  uint64_t groups = 0;
  uint64_t group_bits = 0;  // 2^group_bits inputs share a scale
};

}  // namespace convoy::kernels::gpu
