// SPDX-License-Identifier: Apache-2.0
//
// The tile kernels of one instruction set (tile_loops.inl); numbers.cpp picks one.
#pragma once

#include <cstdint>

#include "convoy/farm/experiments/random/address_tables.h"

namespace convoy::experiments {

struct TileFillers {
  using Fill = void (*)(const AddressTables& tables, uint32_t guess, uint32_t num_slots,
                        float* out);
  // Index [precision][normal].
  Fill fill[2][2];
};

namespace scalar {
// Fills packed normals of one guess, in whole blocks: out[slot].
void fill_packed_blocks(const AddressTables& tables, uint32_t guess, float* out);
}  // namespace scalar

}  // namespace convoy::experiments
