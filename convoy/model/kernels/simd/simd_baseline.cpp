// SPDX-License-Identifier: Apache-2.0
//
// The loops compiled for any x86-64.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "convoy/model/kernels/simd/simd_kernels.h"

// Set by hand: the target pragma defines no macros when preprocessing is a step of its own, as with
// ccache.
#define CONVOY_SIMD_LEVEL 0  // CpuIsa

#pragma GCC optimize("fp-contract=fast")

namespace convoy::kernels::baseline {
namespace {
// clang-format off: the later includes use the first one.
#include "convoy/model/kernels/simd/vector16.inl"
#include "convoy/model/kernels/simd/row_loops.inl"
#include "convoy/model/kernels/simd/logit_loops.inl"
#include "convoy/model/kernels/simd/channel_loops.inl"
#include "convoy/model/kernels/simd/panel_gemm.inl"
#include "convoy/model/kernels/simd/delta_loops.inl"
#include "convoy/model/kernels/simd/quantized_loops.inl"
#include "convoy/model/kernels/simd/coded_loops.inl"
// clang-format on
}  // namespace
#include "convoy/model/kernels/simd/simd_table.inl"
}  // namespace convoy::kernels::baseline
