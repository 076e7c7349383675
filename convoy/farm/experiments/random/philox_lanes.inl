// SPDX-License-Identifier: Apache-2.0
//
// Philox over Lanes, one counter of stream.h per 64-bit lane. Its counter words are (c0, c1, c2,
// c3) = (layout, guess, guess >> 32, slots). In the first three rounds nothing depends on guess and
// slot together. So their results are kept in BlockWords b (per block of slots, address_tables.h)
// and GuessWords g (per guess). After round 3
//
//   c0 = g.high ^ b.first     c1 = g.low     c2 = b.third ^ g.fourth     c3 = b.fourth
// The key of round 3 is already in b.first and b.third. The half of round 4's key that belongs to
// c2 is already in b.fourth. Needs Lanes of one lanes_*.inl.

inline constexpr uint32_t kEvenMultiplier = kPhiloxMultipliers[0];
inline constexpr uint32_t kOddMultiplier = kPhiloxMultipliers[1];

struct GuessWords {
  Lanes::Words high, low, fourth;
};

CONVOY_INLINE GuessWords guess_words(const AddressConstants& tables, const uint32_t* guesses) {
  const Lanes::Words m0 = Lanes::all_words(kEvenMultiplier);
  const Lanes::Words m1 = Lanes::all_words(kOddMultiplier);
  // Round 1 gives c0 = constant ^ guess; round 2 multiplies it.
  const Lanes::Words first =
      Lanes::xor_of(Lanes::load_guesses(guesses), Lanes::all_words(tables.guess_first));
  const Lanes::Words even = Lanes::multiply(first, m0);
  const Lanes::Words third = Lanes::xor_of(Lanes::high(even), Lanes::all_words(tables.guess_third));
  const Lanes::Words odd = Lanes::multiply(third, m1);
  return {Lanes::high(odd), odd, even};
}

struct WordPair {
  Lanes::Words even;  // words 0 (upper halves) and 1 (lower) of each counter
  Lanes::Words odd;   // words 2 (upper halves) and 3 (lower)
};

// `Block`: BlockWords, or a struct of the same three words in 32 bits.
template <uint32_t kRounds, class Block>
CONVOY_INLINE WordPair philox_lanes(const AddressConstants& tables, const Block& block,
                                    const GuessWords& guess) {
  const Lanes::Words m0 = Lanes::all_words(kEvenMultiplier);
  const Lanes::Words m1 = Lanes::all_words(kOddMultiplier);
  Lanes::Words c0 = Lanes::xor_of(guess.high, Lanes::all_words(block.first));
  Lanes::Words c1 = guess.low;
  Lanes::Words c2 = Lanes::xor_of(guess.fourth, Lanes::all_words(block.third));
  Lanes::Words even = Lanes::multiply(c0, m0);
  Lanes::Words odd = Lanes::multiply(c2, m1);
  c0 = Lanes::xor_of(Lanes::high(odd), c1, Lanes::all_words(tables.keys[3][0]));
  c2 = Lanes::xor_of(Lanes::high(even), Lanes::all_words(block.fourth));
  c1 = odd;
  Lanes::Words c3 = even;
#pragma GCC unroll 16
  for (uint32_t round = 4; round + 1 < kRounds; ++round) {
    even = Lanes::multiply(c0, m0);
    odd = Lanes::multiply(c2, m1);
    c0 = Lanes::xor_of(Lanes::high(odd), c1, Lanes::all_words(tables.keys[round][0]));
    c2 = Lanes::xor_of(Lanes::high(even), c3, Lanes::all_words(tables.keys[round][1]));
    c1 = odd;
    c3 = even;
  }
  // Both halves of the last round's products are used, so no lane has to be packed.
  even = Lanes::multiply(c0, m0);
  odd = Lanes::multiply(c2, m1);
  return {Lanes::xor_of(odd, Lanes::raise(c1), Lanes::all_words(tables.last_keys[0])),
          Lanes::xor_of(even, Lanes::raise(c3), Lanes::all_words(tables.last_keys[1]))};
}
