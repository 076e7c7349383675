// SPDX-License-Identifier: Apache-2.0
//
// The arguments that the host passes to the kernel of adamw_narrow_cuda.cu. Pointers are addresses
// on the GPU.
#pragma once

#include <stdint.h>

#include "convoy/model/kernels/adamw/adamw_factors.h"
#include "convoy/model/kernels/counter_draws/counter_hash.h"

namespace convoy::kernels::gpu {

// The most parameters of one launch, because the arguments of a kernel may take 4 KiB.
inline constexpr uint32_t kNarrowParameters = 32;
// Number of elements with one scale, and number of elements that a block of threads takes at once.
inline constexpr uint64_t kNarrowBlock = 256;
inline constexpr uint64_t kNarrowChunk = 8192;

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

// A dynamic map as DynamicCode::nearest() reads it, for numbers from -1 to 1. `lowest` is indexed
// by the bucket of the magnitude: first the entries for positive numbers, then the entries for
// negative numbers.
inline constexpr uint32_t kCodeBucketBits = 15;  // low bits of a float that do not select a bucket
inline constexpr uint32_t kFirstCodeBucket = 100 << 8;  // 2^-27: numbers below have the code of 0
// The number of buckets up to the bucket of 1.
inline constexpr uint32_t kCodeBuckets = (127 << 8) + 1 - kFirstCodeBucket;
struct CodeTable {
  float values[256];
  float thresholds[256];
  uint8_t lowest[2][kCodeBuckets];
  uint8_t unused[2];
};
struct CodeTables {
  CodeTable with_sign;
  CodeTable without_sign;
};
static_assert(sizeof(CodeTable) == 2048 + 2 * kCodeBuckets + 2);

struct NarrowAdamWLaunch {
  AdamWFactors factors;
  const CodeTables* tables = nullptr;  // null: no moments are codes
  uint32_t num_parameters = 0;
  // The first chunk of each parameter; the last entry is the number of chunks.
  uint64_t first_chunk[kNarrowParameters + 1] = {};
  NarrowAdamWParameter parameters[kNarrowParameters] = {};
};

static_assert(sizeof(NarrowAdamWLaunch) <= 4096);

}  // namespace convoy::kernels::gpu
