// SPDX-License-Identifier: Apache-2.0
//
// The arguments that the host passes to the kernel of adamw_narrow_cuda.cu. Pointers are addresses
// on the GPU.
#pragma once

#include <stdint.h>

#include "convoy/model/kernels/adamw/adamw_factors.h"
#include "convoy/model/kernels/counter_draws/counter_hash.h"

namespace convoy::kernels::gpu {

// A kernel's parameters may take 4 KiB.
inline constexpr uint32_t kNarrowParameters = 32;
// Elements with one scale; a thread takes one each.
inline constexpr uint64_t kNarrowBlock = 256;

enum class MomentType : uint32_t { Fp32, Bf16, Codes };

struct NarrowAdamWParameter {
  void* value = nullptr;
  const void* gradient = nullptr;
  void* exp_avg = nullptr;
  void* exp_avg_sq = nullptr;
  float* exp_avg_scale = nullptr;
  float* exp_avg_sq_scale = nullptr;
  void* rounded = nullptr;  // bf16; null: none
  uint64_t count = 0;
  uint64_t first_element = 0;
  CounterKey key;
  MomentType moments = MomentType::Fp32;
  uint16_t value_is_bf16 = 0;
  uint16_t gradient_is_bf16 = 0;
};

// The table of a dynamic map: 256 values, 256 thresholds.
struct CodeTable {
  const float* values = nullptr;
  const float* thresholds = nullptr;
};

struct NarrowAdamWLaunch {
  AdamWFactors factors;
  CodeTable with_sign;
  CodeTable without_sign;
  uint32_t num_parameters = 0;
  uint64_t first_block[kNarrowParameters + 1] = {};  // of each parameter; then their number
  NarrowAdamWParameter parameters[kNarrowParameters] = {};
};

static_assert(sizeof(NarrowAdamWLaunch) <= 4096);

}  // namespace convoy::kernels::gpu
