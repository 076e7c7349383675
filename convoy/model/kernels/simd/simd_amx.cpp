// SPDX-License-Identifier: Apache-2.0
//
// The loops for CPUs with matrix units (AMX): the AVX-512 loops with bf16, except for products of
// bf16.
#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "convoy/model/kernels/simd/simd_kernels.h"

#pragma GCC target("amx-tile,amx-bf16,avx512f,avx512bw,avx512vl,prefer-vector-width=512")

namespace convoy::kernels {
namespace avx512_bf16 {
extern const SimdKernels<c10::BFloat16> kBf16Table;
}  // namespace avx512_bf16

namespace amx {
namespace {

using c10::BFloat16;
// clang-format off: the second include uses the first one.
#include "convoy/model/kernels/simd/tile_gemm.inl"
#include "convoy/model/kernels/simd/tile_codes.inl"
// clang-format on
}  // namespace

const SimdKernels<BFloat16>& bf16_table() {
  static const SimdKernels<BFloat16> table = [] {
    SimdKernels<BFloat16> tiles = avx512_bf16::kBf16Table;
    tiles.multiply = multiply;
    tiles.multiply_bytes = multiply_bytes;
    tiles.multiply_nibbles = multiply_nibbles;
    return tiles;
  }();
  return table;
}

}  // namespace amx
}  // namespace convoy::kernels
