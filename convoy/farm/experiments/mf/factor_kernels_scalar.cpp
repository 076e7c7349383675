// SPDX-License-Identifier: Apache-2.0
//
// The loops of guess-and-check on factorisations compiled for any CPU.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "convoy/farm/experiments/mf/factor_kernels.h"

namespace convoy::experiments::scalar {
namespace {
inline constexpr int kWideGuesses = kFactorGuesses;
// The order matters: each file needs the files before it.
// clang-format off
#include "convoy/farm/experiments/random/lanes_scalar.inl"
#include "convoy/farm/experiments/random/normal_transform.inl"
#include "convoy/farm/experiments/random/philox_lanes.inl"
#include "convoy/farm/experiments/mf/wide_scalar.inl"
#include "convoy/farm/experiments/mf/factor_arithmetic.inl"
#include "convoy/farm/experiments/mf/shortcut_loops.inl"
#include "convoy/farm/experiments/mf/factor_loops.inl"
// clang-format on
}  // namespace

extern const FactorKernels kFactorKernels;
const FactorKernels kFactorKernels = make_factor_kernels();

}  // namespace convoy::experiments::scalar
