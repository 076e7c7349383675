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

}  // namespace convoy::sweep::scalar
