// SPDX-License-Identifier: Apache-2.0
//
// The arguments that the host passes to the kernels of gated_activation_cuda.cu. Pointers are
// addresses on the GPU.
#pragma once

#include <stdint.h>

namespace convoy::kernels::gpu {

struct GatedActivationLaunch {
  const void* gate = nullptr;
  const void* up = nullptr;
  const void* grad = nullptr;  // backward
  void* y = nullptr;           // forward
  void* grad_gate = nullptr;   // backward
  void* grad_up = nullptr;
  uint64_t count = 0;
  uint64_t width = 0;        // forward: elements of a row of gate and up
  uint64_t between = 0;      // forward: elements between the end of a row and the next row
  uint64_t num_vectors = 0;  // 16 bytes each, from the first element on
  uint64_t activation = 0;   // the number of an Activation
};

}  // namespace convoy::kernels::gpu
