// SPDX-License-Identifier: Apache-2.0
//
// Products with rows in 8 bits, compiled for AVX2 with its dot products of bytes.
#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "convoy/model/kernels/simd/integer_dots.h"

#define CONVOY_SIMD_LEVEL 1  // CpuIsa
#define CONVOY_DOT_PRODUCTS 1
#define CONVOY_DOTS_NAME "avx2_vnni"

#pragma GCC target("avx2,fma,f16c,avxvnni")
#pragma GCC optimize("fp-contract=fast")

namespace convoy::kernels::dots_avx2_vnni {
#include "convoy/model/kernels/simd/dots_table.inl"
}  // namespace convoy::kernels::dots_avx2_vnni
