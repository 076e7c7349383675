// SPDX-License-Identifier: Apache-2.0
//
// The loops of guess-and-check compiled for AVX2 with FMA.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "convoy/farm/experiments/ssm/guess_kernels.h"

#pragma GCC target("avx2,fma")

namespace convoy::experiments::avx2 {
namespace {
namespace one {
#include "convoy/farm/experiments/random/lanes_avx2.inl"
}
#include "convoy/farm/experiments/random/lanes_twice.inl"
using Lanes = Twice<one::Lanes>;
#include "convoy/farm/experiments/random/normal_transform.inl"
#include "convoy/farm/experiments/random/philox_lanes.inl"
#include "convoy/farm/experiments/ssm/guess_loops.inl"
}  // namespace

extern const GuessKernels kGuessKernels;
const GuessKernels kGuessKernels = make_kernels();

}  // namespace convoy::experiments::avx2
