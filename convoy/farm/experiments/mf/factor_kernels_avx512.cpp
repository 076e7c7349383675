// SPDX-License-Identifier: Apache-2.0
//
// The loops of guess-and-check on factorisations compiled for AVX-512.
#include <immintrin.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "convoy/farm/experiments/mf/factor_kernels.h"

#pragma GCC target("avx2,fma,avx512f,avx512dq,avx512vl,prefer-vector-width=512")

namespace convoy::experiments::avx512 {
namespace {
// The order matters: each file needs the files before it.
// clang-format off
#include "convoy/farm/experiments/random/lanes_avx512.inl"
#include "convoy/farm/experiments/random/normal_transform.inl"
#include "convoy/farm/experiments/random/philox_lanes.inl"
#include "convoy/farm/experiments/mf/wide_avx512.inl"
#include "convoy/farm/experiments/mf/factor_arithmetic.inl"
#include "convoy/farm/experiments/mf/shortcut_loops.inl"
#include "convoy/farm/experiments/mf/factor_loops.inl"
// clang-format on
}  // namespace

extern const FactorKernels kFactorKernels;
const FactorKernels kFactorKernels = make_factor_kernels();

}  // namespace convoy::experiments::avx512
