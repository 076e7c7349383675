// SPDX-License-Identifier: Apache-2.0
//
// The arguments that the host passes to the kernels of bitsandbytes_weight_cuda.cu. Pointers are
// addresses on the GPU.
#pragma once

#include <stdint.h>

namespace convoy::kernels::gpu {

struct DecodeLaunch {
  const uint8_t* codes = nullptr;  // signed if they have 8 bits
  const void* absmax = nullptr;    // fp32, or uint8 where nested
  const float* nested_absmax = nullptr;
  const float* nested_offset = nullptr;
  const float* nested_table = nullptr;
  void* values = nullptr;
  uint64_t count = 0;
  uint64_t num_vectors = 0;  // vectors of 16 bytes of values, from the first on
  uint64_t width = 0;        // 8 bits: values that share an absmax
  uint32_t block_bits = 0;   // 4 bits: 2^block_bits values share an absmax
  float table[16] = {};      // 4 bits: the values of the codes
};

}  // namespace convoy::kernels::gpu
