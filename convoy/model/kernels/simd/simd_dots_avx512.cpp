// SPDX-License-Identifier: Apache-2.0
//
// Products with rows in 8 bits, compiled for AVX-512.
#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "convoy/model/kernels/simd/integer_dots.h"

#define CONVOY_SIMD_LEVEL 2  // CpuIsa
#define CONVOY_DOT_PRODUCTS 0
#define CONVOY_DOTS_NAME "avx512"

#pragma GCC target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#pragma GCC optimize("fp-contract=fast")

namespace convoy::kernels::dots_avx512 {
#include "convoy/model/kernels/simd/dots_table.inl"
}  // namespace convoy::kernels::dots_avx512
