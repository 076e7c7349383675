// SPDX-License-Identifier: Apache-2.0
//
// Tiles of random numbers compiled for AVX2 with FMA.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "convoy/sweep/random/numbers.h"
#include "convoy/sweep/random/tile_fillers.h"

#pragma GCC target("avx2,fma")

namespace convoy::sweep::avx2 {
namespace {
#include "convoy/sweep/random/lanes_avx2.inl"
#include "convoy/sweep/random/normal_transform.inl"
#include "convoy/sweep/random/philox_lanes.inl"
#include "convoy/sweep/random/tile_loops.inl"
}  // namespace
#include "convoy/sweep/random/tile_table.inl"
}  // namespace convoy::sweep::avx2
