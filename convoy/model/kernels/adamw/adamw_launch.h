// SPDX-License-Identifier: Apache-2.0
//
// The arguments that the host passes to the kernel of adamw_cuda.cu. Pointers are addresses on the
// GPU.
#pragma once

#include <stdint.h>

#include "convoy/model/kernels/adamw/adamw_factors.h"

namespace convoy::kernels::gpu {

// The most parameters of one launch, because the arguments of a kernel may take 4 KiB.
inline constexpr uint32_t kAdamWParameters = 64;
// Elements that a block of threads takes at a time.
inline constexpr uint64_t kAdamWChunk = 8192;

struct AdamWParameter {
  float* value = nullptr;
  const void* gradient = nullptr;
  float* exp_avg = nullptr;
  float* exp_avg_sq = nullptr;
  void* rounded = nullptr;  // bf16; null: none
  uint64_t count = 0;
};

struct AdamWLaunch {
  AdamWFactors factors;
  uint32_t num_parameters = 0;
  uint64_t gradients_are_bf16 = 0;  // else fp32
  // The first chunk of each parameter; the last entry is the number of chunks.
  uint64_t first_chunk[kAdamWParameters + 1] = {};
  AdamWParameter parameters[kAdamWParameters] = {};
};

static_assert(sizeof(AdamWLaunch) <= 4096);

}  // namespace convoy::kernels::gpu
