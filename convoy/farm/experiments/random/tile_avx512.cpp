// SPDX-License-Identifier: Apache-2.0
//
// Tiles of random numbers compiled for AVX-512.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "convoy/farm/experiments/random/numbers.h"
#include "convoy/farm/experiments/random/tile_fillers.h"

#pragma GCC target("avx2,fma,avx512f,avx512dq,avx512vl,prefer-vector-width=512")

namespace convoy::experiments::avx512 {
namespace {
#include "convoy/farm/experiments/random/lanes_avx512.inl"
#include "convoy/farm/experiments/random/normal_transform.inl"
#include "convoy/farm/experiments/random/philox_lanes.inl"
#include "convoy/farm/experiments/random/tile_loops.inl"
}  // namespace
#include "convoy/farm/experiments/random/tile_table.inl"
}  // namespace convoy::experiments::avx512
