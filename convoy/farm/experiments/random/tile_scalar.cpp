// SPDX-License-Identifier: Apache-2.0
//
// Tiles of random numbers compiled for any CPU.
#include <cstddef>
#include <cstdint>

#include "convoy/farm/experiments/random/numbers.h"
#include "convoy/farm/experiments/random/tile_fillers.h"

namespace convoy::experiments::scalar {
namespace {
#include "convoy/farm/experiments/random/lanes_scalar.inl"
#include "convoy/farm/experiments/random/normal_transform.inl"
#include "convoy/farm/experiments/random/philox_lanes.inl"
#include "convoy/farm/experiments/random/tile_loops.inl"
}  // namespace
#include "convoy/farm/experiments/random/tile_table.inl"

void fill_packed_blocks(const AddressTables& tables, uint32_t guess, float* out) {
  const GuessWords words_of_guess = guess_words(tables, &guess);
  for (const BlockWords& block : tables.blocks) {
    const WordPair words =
        philox_lanes<philox_rounds(Precision::Fast)>(tables, block, words_of_guess);
    for (const Lanes::Words& half : {words.even, words.odd}) {
      const NormalPair pair = packed_normal_pair(half);
      Lanes::store_halves(out + 1, out, pair.first);
      Lanes::store_halves(out + 3, out + 2, pair.second);
      out += 4;
    }
  }
}

}  // namespace convoy::experiments::scalar
