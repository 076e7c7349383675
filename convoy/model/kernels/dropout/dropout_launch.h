// SPDX-License-Identifier: Apache-2.0
//
// The arguments that the host passes to the kernels of dropout_cuda.cu. Pointers are addresses on
// the GPU.
#pragma once

#include "convoy/model/kernels/dropout/drop_rule.h"

namespace convoy::kernels::gpu {

struct DropoutLaunch {
  const void* x = nullptr;
  void* y = nullptr;
  uint64_t count = 0;
  uint64_t num_vectors = 0;  // 16 bytes each, from the first element on
  DropRule rule;
};

}  // namespace convoy::kernels::gpu
