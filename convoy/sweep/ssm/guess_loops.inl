// SPDX-License-Identifier: Apache-2.0
//
// Power sums over Lanes. A lane holds one guess: its upper half the even slots of a pair, its lower
// half the odd ones, so four partial sums per power, one for each slot modulo 4, are added as
// (0 + 2) + (1 + 3) at the end. Power 1 is summed from the factors of the normals, power m from
// powers m / 2 and m - m / 2, by fma: a sum has the same bits whichever others are made beside it.
// Needs Lanes, philox_lanes.inl, normal_transform.inl.

template <uint32_t kPowers>
struct PowerList {
  static constexpr uint32_t kLargest = 32 - static_cast<uint32_t>(__builtin_clz(kPowers));
  static constexpr bool has(uint32_t power) { return (kPowers >> (power - 1)) & 1u; }
  // Whether x^power itself is needed, as a factor of a sum or of a higher power.
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

// Adds factor * part, and the powers of their product.
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

// Independent vectors in one turn of the loop, so that one's latencies hide behind the other's
// work.
inline constexpr uint32_t kTogether = 2;

template <Precision kPrecision, uint32_t kPowers>
struct GuessVectors {
  GuessWords words[kTogether];
  PartialSums<kPowers> cosines[kTogether];
  PartialSums<kPowers> sines[kTogether];

  template <bool kMasked>
  CONVOY_INLINE void add_block(const AddressTables& tables, const BlockWords& block,
                               Lanes::Words cosine_mask, Lanes::Words sine_mask) {
#pragma GCC unroll 4
    for (uint32_t at = 0; at < kTogether; ++at) {
      const WordPair pair = philox_lanes<philox_rounds(kPrecision)>(tables, block, words[at]);
      NormalFactors factors = normal_factors<kPrecision>(pair.even, pair.odd);
      if constexpr (kMasked) {
        factors.radius = Lanes::keep(factors.radius, cosine_mask);
        factors.turned = Lanes::keep(factors.turned, sine_mask);
      }
      add_powers<kPowers>(cosines[at], factors.radius, factors.cosine);
      add_powers<kPowers>(sines[at], factors.turned, factors.sine);
    }
  }
};

constexpr uint64_t slot_mask(uint32_t slots) {
  return (slots >= 1 ? uint64_t{0xFFFFFFFF} << 32 : 0) | (slots >= 2 ? 0xFFFFFFFFu : 0);
}

template <Precision kPrecision, uint32_t kPowers>
void guess_power_sums(const AddressTables& tables, uint32_t num_slots, const uint32_t* guesses,
                      float* sums) {
  const uint32_t last_block = (num_slots - 1) / kSlotsPerBlock;
  const uint32_t left = num_slots - last_block * kSlotsPerBlock;
  const Lanes::Words cosine_mask = Lanes::all_words(slot_mask(left));
  const Lanes::Words sine_mask = Lanes::all_words(slot_mask(left < 2 ? 0 : left - 2));
  for (uint32_t group = 0; group < kGroupGuesses; group += kTogether * Lanes::kGuesses) {
    GuessVectors<kPrecision, kPowers> vectors;
    for (uint32_t at = 0; at < kTogether; ++at) {
      vectors.words[at] = guess_words(tables, guesses + group + at * Lanes::kGuesses);
      for (auto& sum : vectors.cosines[at].of) sum = Lanes::all(0.0f);
      for (auto& sum : vectors.sines[at].of) sum = Lanes::all(0.0f);
    }
    for (uint32_t block = 0; block < last_block; ++block)
      vectors.template add_block<false>(tables, tables.blocks[block], cosine_mask, sine_mask);
    vectors.template add_block<true>(tables, tables.blocks[last_block], cosine_mask, sine_mask);
    for (uint32_t at = 0; at < kTogether; ++at) {
      for (uint32_t power = 0; power < PowerList<kPowers>::kLargest; ++power)
        Lanes::store_sums(sums + power * kGroupGuesses + group + at * Lanes::kGuesses,
                          Lanes::add(vectors.cosines[at].of[power], vectors.sines[at].of[power]));
    }
  }
}

template <Precision kPrecision, uint32_t... kAt>
constexpr void fill_kernels(PowerSums (&row)[GuessKernels::kSets],
                            std::integer_sequence<uint32_t, kAt...>) {
  ((row[kAt] = guess_power_sums<kPrecision, kAt + 1>), ...);
  row[15] = guess_power_sums<kPrecision, (1u << 6) - 1>;
  row[16] = guess_power_sums<kPrecision, (1u << 8) - 1>;
  row[17] = guess_power_sums<kPrecision, (1u << 16) - 1>;
}

constexpr GuessKernels make_kernels() {
  GuessKernels table = {};
  fill_kernels<Precision::Exact>(table.sums[0], std::make_integer_sequence<uint32_t, 15>());
  fill_kernels<Precision::Fast>(table.sums[1], std::make_integer_sequence<uint32_t, 15>());
  return table;
}
