// SPDX-License-Identifier: Apache-2.0
//
// Sixteen guesses of a factorisation over Wide, one per lane. A matrix between layers is stored by
// units: unit u of row r is at (u * n_rows + r) * 16. The weights of a layer are made for a few
// output units at a time and used at once. Numerics: float, sums by fma in order of the inputs;
// Gram matrices and their factors in double. Needs Lanes, philox_lanes.inl, normal_transform.inl,
// Wide, factor_arithmetic.inl, shortcut_loops.inl.

inline constexpr uint32_t kRegisters = kFactorGuesses / Lanes::kGuesses;

struct GuessRegisters {
  GuessWords words[kRegisters];
};

CONVOY_INLINE void load_guesses(GuessRegisters& to, const AddressTables& tables, uint32_t first) {
  for (uint32_t at = 0; at < kRegisters; ++at) {
    uint32_t guesses[Lanes::kGuesses];
    const uint32_t row = at / 2 * 2 * Lanes::kGuesses;
    for (uint32_t lane = 0; lane < Lanes::kGuesses; ++lane)
      guesses[lane] = first + row + guess_of_lane(at % 2, lane);
    to.words[at] = guess_words(tables, guesses);
  }
}

// Stores slots 0 to 3 of two registers of guesses.
CONVOY_INLINE void store_four(float* to, const NormalPair& left, const NormalPair& right) {
  store_pair(to, to + kFactorGuesses, left.first, right.first);
  store_pair(to + 2 * kFactorGuesses, to + 3 * kFactorGuesses, left.second, right.second);
}

// Fills to[slot * 16 + guess] for the slots of blocks [first_block, first_block + num_blocks).
template <Precision kPrecision, bool kNormal>
void make_slots(const AddressTables& tables, const GuessRegisters& guesses, uint32_t first_block,
                uint32_t num_blocks, float* to) {
  constexpr uint32_t kFourSlots = 4 * kFactorGuesses;
  for (uint32_t at = 0; at < kRegisters; at += 2) {
    const GuessWords left = guesses.words[at], right = guesses.words[at + 1];
    float* row = to + at * Lanes::kGuesses;
    for (uint32_t block = 0; block < num_blocks; ++block) {
      const BlockWords& shared = tables.blocks[first_block + block];
      const WordPair a = philox_lanes<philox_rounds(kPrecision)>(tables, shared, left);
      const WordPair b = philox_lanes<philox_rounds(kPrecision)>(tables, shared, right);
      if constexpr (kPrecision == Precision::Fast && kNormal) {
        store_four(row, packed_normal_pair(a.even), packed_normal_pair(b.even));
        row += kFourSlots;
        store_four(row, packed_normal_pair(a.odd), packed_normal_pair(b.odd));
      } else {
        store_four(row, four_slots<kPrecision, kNormal>(a), four_slots<kPrecision, kNormal>(b));
      }
      row += kFourSlots;
    }
  }
}

CONVOY_INLINE Wide unit_value(const FactorSizes& sizes, const FactorLayer& layer,
                              const Wide& sum) {
  const Wide value = Wide::multiply(sum, Wide::all(layer.scale));
  return layer.hidden ? activated(sizes.activation, sizes.negative_slope, value) : value;
}

// Computes kRows rows, from `row` on, of one output unit: out = phi(scale * sum of input * weight).
template <uint32_t kRows>
CONVOY_INLINE void unit_rows(const FactorSizes& sizes, const FactorLayer& layer,
                             const float* in, uint32_t inputs, const float* weights, float* out,
                             uint32_t row) {
  Wide sums[kRows];
  for (Wide& sum : sums) sum = Wide::all(0.0f);
  const uint32_t stride = sizes.n_rows * kFactorGuesses;
  const float* from = in + row * kFactorGuesses;
  for (uint32_t input = 0; input < inputs; ++input, from += stride) {
    const Wide weight = Wide::load(weights + input * kFactorGuesses);
#pragma GCC unroll 8
    for (uint32_t at = 0; at < kRows; ++at)
      sums[at] = Wide::fma(Wide::load(from + at * kFactorGuesses), weight, sums[at]);
  }
  for (uint32_t at = 0; at < kRows; ++at)
    unit_value(sizes, layer, sums[at]).store(out + (row + at) * kFactorGuesses);
}

using UnitRows = void (*)(const FactorSizes&, const FactorLayer&, const float*, uint32_t,
                          const float*, float*, uint32_t);

template <uint32_t kRows>
void unit_rows_of(const FactorSizes& sizes, const FactorLayer& layer, const float* in,
                  uint32_t inputs, const float* weights, float* out, uint32_t row) {
  unit_rows<kRows>(sizes, layer, in, inputs, weights, out, row);
}

// Computes one output unit of a layer whose input is `in`. If `in` is null, the input is the
// identity.
CONVOY_INLINE void make_unit(const FactorSizes& sizes, const FactorLayer& layer,
                             const float* in, uint32_t inputs, const float* weights, float* out) {
  if (in == nullptr) {
    for (uint32_t row = 0; row < sizes.n_rows; ++row)
      unit_value(sizes, layer, Wide::load(weights + row * kFactorGuesses))
          .store(out + row * kFactorGuesses);
    return;
  }
  constexpr uint32_t kMost = 8;
  constexpr UnitRows kOf[kMost] = {unit_rows_of<1>, unit_rows_of<2>, unit_rows_of<3>,
                                   unit_rows_of<4>, unit_rows_of<5>, unit_rows_of<6>,
                                   unit_rows_of<7>, unit_rows_of<8>};
  for (uint32_t row = 0; row < sizes.n_rows; row += kMost) {
    const uint32_t rows = sizes.n_rows - row < kMost ? sizes.n_rows - row : kMost;
    kOf[rows - 1](sizes, layer, in, inputs, weights, out, row);
  }
}

// Computes Y of sixteen guesses, by columns, in memory.units(0) or memory.units(1), and returns it.
template <Precision kPrecision, bool kNormal>
CONVOY_INLINE float* make_matrices(const FactorSizes& sizes, const AddressTables& tables,
                                   const GuessRegisters& guesses, FactorMemory& memory) {
  const float* in = nullptr;
  float *out = memory.units(0), *other = memory.units(1);
  for (const FactorLayer& layer : sizes.layers) {
    uint32_t block = layer.first_block;
    const bool triangular = layer.hidden && !sizes.diagonal.empty();
    const uint32_t together = triangular ? layer.outputs : units_together(layer.inputs);
    for (uint32_t unit = 0; unit < layer.outputs; unit += together) {
      const uint32_t units = layer.outputs - unit < together ? layer.outputs - unit : together;
      const uint32_t slots = triangular ? layer.num_slots : units * layer.inputs;
      const uint32_t blocks = sizes.blocks_of(slots);
      make_slots<kPrecision, kNormal>(tables, guesses, block, blocks, memory.weights());
      block += blocks;
      const float* weights = memory.weights();
      if (triangular) {
        unpack_triangle(sizes, memory.weights(), memory.unpacked());
        weights = memory.unpacked();
      }
      for (uint32_t at = 0; at < units; ++at)
        make_unit(sizes, layer, in, layer.inputs,
                  weights + size_t{at} * layer.inputs * kFactorGuesses,
                  out + size_t{unit + at} * sizes.n_rows * kFactorGuesses);
    }
    if (layer.hidden && sizes.reduce) {
      reduce_to_factor(sizes, out, layer.outputs, memory.factor(), other);
      std::swap(out, other);
    }
    in = out;
    std::swap(out, other);
  }
  return other;
}

inline void normalise(const FactorSizes& sizes, float* y) {
  const uint32_t entries = sizes.n_rows * sizes.n_cols;
  const Wide factor =
      norm_factor(entries, sizes.softening, [&](uint32_t at) __attribute__((always_inline)) {
        return Wide::load(y + at * kFactorGuesses);
      });
  for (uint32_t entry = 0; entry < entries; ++entry)
    Wide::multiply(Wide::load(y + entry * kFactorGuesses), factor)
        .store(y + entry * kFactorGuesses);
}

// The sum of squares never decreases, so the remaining rows are skipped once no lane can pass.
CONVOY_INLINE uint32_t check_rows(const FactorSizes& sizes, const float* y) {
  constexpr size_t kRowsBetween = 4;
  const Wide limit = Wide::all(sizes.limit);
  Wide sum = Wide::all(0.0f);
  size_t since = 0;
  for (const CheckRow& row : sizes.rows) {
    const Wide residual = row_residual(
        row, sizes.coefficients.data(), [&](uint32_t at) __attribute__((always_inline)) {
          return Wide::load(y + at * kFactorGuesses);
        });
    sum = Wide::fma(residual, residual, sum);
    if (++since < kRowsBetween) continue;
    since = 0;
    if (Wide::below(sum, limit) == 0) return 0;
  }
  return Wide::below(sum, limit);
}

template <Precision kPrecision, bool kNormal>
uint32_t check_guesses(const FactorSizes& sizes, const AddressTables& tables, uint32_t first,
                       FactorMemory& memory, float* y) {
  GuessRegisters guesses;
  load_guesses(guesses, tables, first);
  float* const made = make_matrices<kPrecision, kNormal>(sizes, tables, guesses, memory);
  if (sizes.normalize) normalise(sizes, made);
  const uint32_t passed = check_rows(sizes, made);
  if (passed != 0)
    for (uint32_t at = 0; at < sizes.n_rows * sizes.n_cols; ++at)
      Wide::load(made + at * kFactorGuesses).store(y + at * kFactorGuesses);
  return passed;
}

constexpr FactorKernels make_factor_kernels() {
  return {{{check_guesses<Precision::Exact, true>, check_guesses<Precision::Exact, false>},
           {check_guesses<Precision::Fast, true>, check_guesses<Precision::Fast, false>}}};
}
