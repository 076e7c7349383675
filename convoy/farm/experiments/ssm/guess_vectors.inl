// SPDX-License-Identifier: Apache-2.0
//
// Power sums over Lanes. A lane holds one guess: the upper half of the lane holds the first word of
// each pair of words, the lower half the second. There are two partial sums, which are added at the
// end: one of the larger and one of the smaller normals of the pairs. A last block that is not full
// adds the first slots of its pairs to one of them, and the second slots to the other. Power 1 is
// summed from the factors of the normals. Power m is summed by fma from powers m / 2 and m - m / 2,
// so a sum has the same bits whichever other powers are summed. If only power 1 is needed, it is
// summed from the sums of pairs. Needs Lanes, philox_lanes.inl, normal_transform.inl.

template <uint32_t kPowers>
struct PowerList {
  static constexpr uint32_t kLargest = 32 - static_cast<uint32_t>(__builtin_clz(kPowers));
  static constexpr bool has(uint32_t power) { return (kPowers >> (power - 1)) & 1u; }
  // Whether x^power itself is needed as a factor of a sum or of a higher power.
  static constexpr bool is_factor(uint32_t power) {
    for (uint32_t above = power + 1; above <= kLargest; ++above) {
      const bool splits = above / 2 == power || above - above / 2 == power;
      if (splits && (has(above) || is_factor(above))) return true;
    }
    return false;
  }
};

template <uint32_t kPowers>
struct PartialSums {
  Lanes::Floats of[PowerList<kPowers>::kLargest];
};

// Adds the powers of the product factor * part.
template <uint32_t kPowers>
CONVOY_INLINE void add_powers(PartialSums<kPowers>& sums, Lanes::Floats factor,
                              Lanes::Floats part) {
  using List = PowerList<kPowers>;
  if constexpr (List::has(1)) sums.of[0] = Lanes::fma(factor, part, sums.of[0]);
  if constexpr (List::kLargest > 1) {
    Lanes::Floats x[List::kLargest + 1];
    x[1] = Lanes::multiply(factor, part);
    [&]<uint32_t... kAt>(std::integer_sequence<uint32_t, kAt...>) __attribute__((always_inline)) {
      (
          [&]() __attribute__((always_inline)) {
            constexpr uint32_t m = kAt + 2;
            if constexpr (List::is_factor(m)) x[m] = Lanes::multiply(x[m / 2], x[m - m / 2]);
            if constexpr (List::has(m))
              sums.of[m - 1] = Lanes::fma(x[m / 2], x[m - m / 2], sums.of[m - 1]);
          }(),
          ...);
    }
    (std::make_integer_sequence<uint32_t, List::kLargest - 1>());
  }
}

// A mask of a lane's halves: the upper half is the first of two slots, the lower half the second.
constexpr uint64_t slot_mask(uint32_t slots) {
  return (slots >= 1 ? uint64_t{0xFFFFFFFF} << 32 : 0) | (slots >= 2 ? 0xFFFFFFFFu : 0);
}

template <Precision>
struct GuessForm {
  using Form = ExactForm;
  static constexpr uint32_t kPerBlock = kSlotsPerBlock;
};
template <>
struct GuessForm<Precision::Fast> {
  using Form = PackedForm;
  static constexpr uint32_t kPerBlock = kPackedSlotsPerBlock;
};

template <Precision kPrecision, uint32_t kPowers>
class GuessVector {
 public:
  // Sums slots 0 .. num_slots - 1 of Lanes::kGuesses guesses. Reads one block beyond the last: the
  // words of the next block are made before the normals of this block are used, so that the latency
  // of one hides behind the work of the other.
  template <class Block>
  CONVOY_INLINE void sum_slots(const AddressConstants& tables, const Block* blocks,
                               uint32_t num_slots, const uint32_t* guesses) {
    const GuessWords guess = guess_words(tables, guesses);
    for (auto& sum : larger_.of) sum = Lanes::all(0.0f);
    for (auto& sum : smaller_.of) sum = Lanes::all(0.0f);
    const uint32_t full_blocks = num_slots / kPerBlock;
    WordPair words = philox_lanes<kRounds>(tables, blocks[0], guess);
    for (uint32_t block = 0; block < full_blocks; ++block) {
      const WordPair next = philox_lanes<kRounds>(tables, blocks[block + 1], guess);
      add_block(words);
      words = next;
    }
    const uint32_t left = num_slots % kPerBlock;
    if (left > 0) add_slots(words, left);
  }

  // The sum of a power, still in two halves per lane: Lanes::store_sums adds the halves.
  CONVOY_INLINE Lanes::Floats total(uint32_t power) const {
    return Lanes::add(larger_.of[power], smaller_.of[power]);
  }

 private:
  using Form = typename GuessForm<kPrecision>::Form;
  static constexpr uint32_t kPerBlock = GuessForm<kPrecision>::kPerBlock;
  static constexpr uint32_t kRounds = philox_rounds(kPrecision);

  CONVOY_INLINE void add_block(const WordPair& words) {
    if constexpr (kPrecision == Precision::Exact) {
      add_pairs(words.even, words.odd);
    } else {
      add_pairs(words.even, words.even);
      add_pairs(words.odd, words.odd);
    }
  }

  CONVOY_INLINE void add_pairs(Lanes::Words radius_word, Lanes::Words angle_word) {
    if constexpr (kPowers == 1) {
      const SumFactors factors = sum_factors<Form>(radius_word, angle_word);
      larger_.of[0] = Lanes::fma(factors.radius, factors.turn, larger_.of[0]);
    } else {
      const PairFactors factors = pair_factors<Form>(radius_word, angle_word);
      add_powers<kPowers>(larger_, factors.radius, factors.cosine);
      add_powers<kPowers>(smaller_, factors.turned, factors.sine);
    }
  }

  // Adds the first `slots` slots of a block that is not needed in full.
  CONVOY_INLINE void add_slots(const WordPair& words, uint32_t slots) {
    if constexpr (kPrecision == Precision::Exact) {
      add_normals(normal_pair<kPrecision>(words.even, words.odd), slots);
    } else {
      add_normals(packed_normal_pair(words.even), slots);
      if (slots > 4) add_normals(packed_normal_pair(words.odd), slots - 4);
    }
  }

  CONVOY_INLINE void add_normals(const NormalPair& pair, uint32_t slots) {
    const Lanes::Words first_mask = Lanes::all_words(slot_mask(slots));
    const Lanes::Words second_mask = Lanes::all_words(slot_mask(slots < 2 ? 0 : slots - 2));
    const Lanes::Floats one = Lanes::all(1.0f);
    add_powers<kPowers>(larger_, Lanes::keep(pair.first, first_mask), one);
    add_powers<kPowers>(smaller_, Lanes::keep(pair.second, second_mask), one);
  }

  PartialSums<kPowers> larger_;
  PartialSums<kPowers> smaller_;
};
