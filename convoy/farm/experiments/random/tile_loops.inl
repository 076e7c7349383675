// SPDX-License-Identifier: Apache-2.0
//
// Tiles of sixteen guesses (numbers.h). Needs Lanes, philox_lanes.inl, normal_transform.inl.

// Writes to[slot * 16 + guess]. The upper halves are slot 0 of the pair, the lower halves slot 1.
CONVOY_INLINE void store_pair(float* to, uint32_t slots_left, Lanes::Floats values) {
  if (slots_left >= 2) {
    Lanes::store_halves(to + kTileGuesses, to, values);
  } else if (slots_left == 1) {
    float second[Lanes::kGuesses];
    Lanes::store_halves(second, to, values);
  }
}

template <Precision kPrecision, bool kNormal>
void fill_tile(const AddressTables& tables, uint32_t guess, uint32_t num_slots, float* out) {
  for (uint32_t lane = 0; lane < kTileGuesses; lane += Lanes::kGuesses) {
    uint32_t guesses[Lanes::kGuesses];
    for (uint32_t at = 0; at < Lanes::kGuesses; ++at) guesses[at] = guess + lane + at;
    const GuessWords words = guess_words(tables, guesses);
    for (uint32_t slot = 0; slot < num_slots; slot += kSlotsPerBlock) {
      const WordPair pair = philox_lanes<philox_rounds(kPrecision)>(
          tables, tables.blocks[slot / kSlotsPerBlock], words);
      const uint32_t left = num_slots - slot;
      float* const to = out + slot * kTileGuesses + lane;
      Lanes::Floats first, second;
      if constexpr (kNormal) {
        const NormalPair normals = normal_pair<kPrecision>(pair.even, pair.odd);
        first = normals.first;
        second = normals.second;
      } else {
        const Lanes::Floats scale = Lanes::all(0x1p-31f);
        first = Lanes::multiply(Lanes::odd_to_float(pair.even), scale);
        second = Lanes::multiply(Lanes::odd_to_float(pair.odd), scale);
      }
      store_pair(to, left, first);
      store_pair(to + 2 * kTileGuesses, left < 2 ? 0 : left - 2, second);
    }
  }
}
