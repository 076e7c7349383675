// SPDX-License-Identifier: Apache-2.0
//
// The arguments that the host passes to the kernels of rms_norm_cuda.cu. Pointers are addresses on
// the GPU.
#pragma once

#include <stdint.h>

namespace convoy::kernels::gpu {

// The weight's gradient is summed in parts of this many rows. The number is the same on every GPU,
// so the bits of the gradient are, too.
inline constexpr uint64_t kNormRowsPerPart = 64;

struct RmsNormLaunch {
  const void* x = nullptr;
  // Null: none. Forward stores x + added in `sum` and takes its norm; backward adds `added` to the
  // gradient of x.
  const void* added = nullptr;
  void* sum = nullptr;
  const void* weight = nullptr;
  const void* grad = nullptr;    // backward: the gradient of y
  float* inverse_rms = nullptr;  // per row; forward writes it unless it is null
  void* result = nullptr;        // forward: y. backward: the gradient of x
  float* sums = nullptr;         // [parts, width], for the weight's gradient
  uint64_t rows = 0;
  uint64_t width = 0;
  float epsilon = 0;
  uint32_t scale_by_one_plus = 0;
  uint32_t vectors = 0;  // every row may be read by vectors
};

}  // namespace convoy::kernels::gpu
