// SPDX-License-Identifier: Apache-2.0
//
// Products with rows in 8 bits, compiled for any x86-64.
#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "convoy/model/kernels/simd/integer_dots.h"

#define CONVOY_SIMD_LEVEL 0  // CpuIsa
#define CONVOY_DOT_PRODUCTS 0
#define CONVOY_DOTS_NAME "baseline"

#pragma GCC optimize("fp-contract=fast")

namespace convoy::kernels::dots_baseline {
#include "convoy/model/kernels/simd/dots_table.inl"
}  // namespace convoy::kernels::dots_baseline
