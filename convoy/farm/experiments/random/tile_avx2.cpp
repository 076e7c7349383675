// SPDX-License-Identifier: Apache-2.0
//
// Tiles of random numbers compiled for AVX2 with FMA.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "convoy/farm/experiments/random/numbers.h"
#include "convoy/farm/experiments/random/tile_fillers.h"

#pragma GCC target("avx2,fma")

namespace convoy::experiments::avx2 {
namespace {
#include "convoy/farm/experiments/random/lanes_avx2.inl"
#include "convoy/farm/experiments/random/normal_transform.inl"
#include "convoy/farm/experiments/random/philox_lanes.inl"
#include "convoy/farm/experiments/random/tile_loops.inl"
}  // namespace
#include "convoy/farm/experiments/random/tile_table.inl"
}  // namespace convoy::experiments::avx2
