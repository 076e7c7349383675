// SPDX-License-Identifier: Apache-2.0
//
// One pass over the codes into values that a product reads next: memory limits the speed, since
// half a byte is read and two bytes are written for a value in bf16. A vector of values lies in one
// block, whose table of 16 each thread block keeps in shared memory. Products are rounded once.
// Reference: bitsandbytes_weight_aten.cpp.
#include "convoy/model/kernels/bitsandbytes_weight/bitsandbytes_weight_launch.h"
#include "convoy/model/kernels/cuda/elements.cuh"
#include "convoy/model/kernels/cuda/teams.cuh"

namespace convoy::kernels::gpu {
namespace {

CONVOY_SHARED float nibble_table[16];

CONVOY_DEVICE float absmax_of(const DecodeLaunch& launch, uint64_t block) {
  if (launch.nested_table == nullptr) return static_cast<const float*>(launch.absmax)[block];
  constexpr int kNestedBits = 8;
  const uint8_t code = static_cast<const uint8_t*>(launch.absmax)[block];
  return launch.nested_table[code] * launch.nested_absmax[block >> kNestedBits] +
         *launch.nested_offset;
}

// kCount neighbouring values from an even index on, or a single value.
template <int kCount>
CONVOY_DEVICE void look_up(const DecodeLaunch& launch, uint64_t at, float (&values)[kCount]) {
  const float absmax = absmax_of(launch, at >> launch.block_bits);
  if constexpr (kCount == 1) {
    const uint32_t byte = launch.codes[at / 2];
    values[0] = nibble_table[at % 2 == 0 ? byte >> 4 : byte & 15] * absmax;
  } else {
    for (int byte = 0; byte < kCount / 2; ++byte) {
      const uint32_t both = launch.codes[at / 2 + byte];
      values[2 * byte] = nibble_table[both >> 4] * absmax;
      values[2 * byte + 1] = nibble_table[both & 15] * absmax;
    }
  }
}

template <class Element>
CONVOY_DEVICE void decode_nibbles(const DecodeLaunch& launch) {
  if (__nvvm_read_ptx_sreg_tid_x() == 0)
    for (int code = 0; code < 16; ++code) nibble_table[code] = launch.table[code];
  wait_for_block();
  for_elements<kPerLoad<Element>>(launch.count, launch.num_vectors, [&](uint64_t at, auto count) {
    constexpr int kCount = decltype(count)::value;
    float values[kCount];
    look_up(launch, at, values);
    store(static_cast<Element*>(launch.values) + at, values);
  });
}

template <class Element>
CONVOY_DEVICE void decode_bytes(const DecodeLaunch& launch) {
  constexpr float kStep = 7.874015718698502e-3f;
  for_elements<kPerLoad<Element>>(launch.count, launch.num_vectors, [&](uint64_t at, auto count) {
    constexpr int kCount = decltype(count)::value;
    const float absmax = static_cast<const float*>(launch.absmax)[at / launch.width];
    float values[kCount];
    for (int i = 0; i < kCount; ++i)
      values[i] = whole_number(launch.codes[at + i]) * absmax * kStep;
    store(static_cast<Element*>(launch.values) + at, values);
  });
}

}  // namespace

CONVOY_KERNEL void decode_nibbles_fp32(const DecodeLaunch launch) { decode_nibbles<float>(launch); }
CONVOY_KERNEL void decode_nibbles_bf16(const DecodeLaunch launch) { decode_nibbles<Bf16>(launch); }
CONVOY_KERNEL void decode_bytes_fp32(const DecodeLaunch launch) { decode_bytes<float>(launch); }
CONVOY_KERNEL void decode_bytes_bf16(const DecodeLaunch launch) { decode_bytes<Bf16>(launch); }

}  // namespace convoy::kernels::gpu
