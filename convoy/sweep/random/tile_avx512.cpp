// SPDX-License-Identifier: Apache-2.0
//
// Tiles of random numbers compiled for AVX-512.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "convoy/sweep/random/numbers.h"
#include "convoy/sweep/random/tile_fillers.h"

#pragma GCC target("avx2,fma,avx512f,avx512dq,avx512vl,prefer-vector-width=512")

namespace convoy::sweep::avx512 {
namespace {
#include "convoy/sweep/random/lanes_avx512.inl"
#include "convoy/sweep/random/normal_transform.inl"
#include "convoy/sweep/random/philox_lanes.inl"
#include "convoy/sweep/random/tile_loops.inl"
}  // namespace
#include "convoy/sweep/random/tile_table.inl"
}  // namespace convoy::sweep::avx512
