// SPDX-License-Identifier: Apache-2.0
//
// Tiles of random numbers compiled for any CPU.
#include <cstddef>
#include <cstdint>

#include "convoy/sweep/random/numbers.h"
#include "convoy/sweep/random/tile_fillers.h"

namespace convoy::sweep::scalar {
namespace {
#include "convoy/sweep/random/lanes_scalar.inl"
#include "convoy/sweep/random/normal_transform.inl"
#include "convoy/sweep/random/philox_lanes.inl"
#include "convoy/sweep/random/tile_loops.inl"
}  // namespace
#include "convoy/sweep/random/tile_table.inl"
}  // namespace convoy::sweep::scalar
