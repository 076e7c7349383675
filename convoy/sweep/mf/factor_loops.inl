// SPDX-License-Identifier: Apache-2.0
//
// Sixteen guesses of a factorisation over Wide, one per lane. A matrix between layers is kept by units: unit u of row r
// is at (u * n_rows + r) * 16. Weights of a layer are made a few output units at a time, used, and forgotten.
// Numerics: float, sums by fma in order of the inputs; Gram matrices and their factors in double.
// Needs Lanes, philox_lanes.inl, normal_transform.inl, Wide.

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

struct SlotPairs {
  Lanes::Floats first, second;  // slots 0 and 1, slots 2 and 3 of a block
};

template <Precision kPrecision, bool kNormal>
CONVOY_INLINE SlotPairs make_block(const AddressTables& tables, const BlockWords& block,
                                   const GuessWords& words) {
  const WordPair pair = philox_lanes<philox_rounds(kPrecision)>(tables, block, words);
  if constexpr (kNormal) {
    const NormalPair normals = normal_pair<kPrecision>(pair.even, pair.odd);
    return {normals.first, normals.second};
  } else {
    const Lanes::Floats scale = Lanes::all(0x1p-31f);
    return {Lanes::multiply(Lanes::odd_to_float(pair.even), scale),
            Lanes::multiply(Lanes::odd_to_float(pair.odd), scale)};
  }
}

// to[slot * 16 + guess] for the slots of blocks [first_block, first_block + num_blocks).
template <Precision kPrecision, bool kNormal>
void make_slots(const AddressTables& tables, const GuessRegisters& guesses, uint32_t first_block,
                uint32_t num_blocks, float* to) {
  for (uint32_t at = 0; at < kRegisters; at += 2) {
    const GuessWords left = guesses.words[at], right = guesses.words[at + 1];
    float* row = to + at * Lanes::kGuesses;
    for (uint32_t block = 0; block < num_blocks; ++block) {
      const BlockWords& shared = tables.blocks[first_block + block];
      const SlotPairs a = make_block<kPrecision, kNormal>(tables, shared, left);
      const SlotPairs b = make_block<kPrecision, kNormal>(tables, shared, right);
      store_pair(row, row + kFactorGuesses, a.first, b.first);
      store_pair(row + 2 * kFactorGuesses, row + 3 * kFactorGuesses, a.second, b.second);
      row += kSlotsPerBlock * kFactorGuesses;
    }
  }
}

// tanh within 4e-7 of the exact one, relatively; minimax as a quotient of polynomials up to 7.9, where it is 1 to a
// float's precision.
CONVOY_INLINE Wide wide_tanh(const Wide& value) {
  constexpr float kBound = 7.9f;
  constexpr float kAbove[] = {1.0f, 0.1345062553882599f, 0.00357899721711874f,
                              2.2022330529918894e-05f, 1.542809435761683e-08f};
  constexpr float kBelow[] = {1.0f, 0.4678395390510559f, 0.026192257180809975f,
                              0.0003423658781684935f, 8.598829026595922e-07f};
  const Wide x = Wide::larger(Wide::smaller(value, Wide::all(kBound)), Wide::all(-kBound));
  const Wide square = Wide::multiply(x, x);
  Wide above = Wide::all(kAbove[4]), below = Wide::all(kBelow[4]);
  for (int at = 3; at >= 0; --at) {
    above = Wide::fma(above, square, Wide::all(kAbove[at]));
    below = Wide::fma(below, square, Wide::all(kBelow[at]));
  }
  return Wide::divide(Wide::multiply(x, above), below);
}

CONVOY_INLINE Wide activated(const FactorPlan& plan, bool hidden, const Wide& value) {
  if (!hidden || plan.activation == MfActivation::Linear) return value;
  if (plan.activation == MfActivation::Tanh) return wide_tanh(value);
  const Wide zero = Wide::all(0.0f);
  return Wide::fma(Wide::all(plan.negative_slope), Wide::smaller(value, zero),
                   Wide::larger(value, zero));
}

// kRows rows from `row` on of one output unit: out = phi(scale * sum of input * weight).
template <uint32_t kRows>
CONVOY_INLINE void unit_rows(const FactorPlan& plan, const FactorPlan::Layer& layer,
                             const float* in, uint32_t inputs, const float* weights, float* out,
                             uint32_t row) {
  Wide sums[kRows];
  for (Wide& sum : sums) sum = Wide::all(0.0f);
  const uint32_t stride = plan.n_rows * kFactorGuesses;
  const float* from = in + row * kFactorGuesses;
  for (uint32_t input = 0; input < inputs; ++input, from += stride) {
    const Wide weight = Wide::load(weights + input * kFactorGuesses);
#pragma GCC unroll 8
    for (uint32_t at = 0; at < kRows; ++at)
      sums[at] = Wide::fma(Wide::load(from + at * kFactorGuesses), weight, sums[at]);
  }
  const Wide scale = Wide::all(layer.scale);
  for (uint32_t at = 0; at < kRows; ++at)
    activated(plan, layer.hidden, Wide::multiply(sums[at], scale))
        .store(out + (row + at) * kFactorGuesses);
}

using UnitRows = void (*)(const FactorPlan&, const FactorPlan::Layer&, const float*, uint32_t,
                          const float*, float*, uint32_t);

template <uint32_t kRows>
void unit_rows_of(const FactorPlan& plan, const FactorPlan::Layer& layer, const float* in,
                  uint32_t inputs, const float* weights, float* out, uint32_t row) {
  unit_rows<kRows>(plan, layer, in, inputs, weights, out, row);
}

// One output unit of a layer with `in` before it, null for the identity.
CONVOY_INLINE void make_unit(const FactorPlan& plan, const FactorPlan::Layer& layer,
                             const float* in, uint32_t inputs, const float* weights, float* out) {
  if (in == nullptr) {
    const Wide scale = Wide::all(layer.scale);
    for (uint32_t row = 0; row < plan.n_rows; ++row)
      activated(plan, layer.hidden,
                Wide::multiply(Wide::load(weights + row * kFactorGuesses), scale))
          .store(out + row * kFactorGuesses);
    return;
  }
  constexpr uint32_t kMost = 8;
  constexpr UnitRows kOf[kMost] = {unit_rows_of<1>, unit_rows_of<2>, unit_rows_of<3>,
                                   unit_rows_of<4>, unit_rows_of<5>, unit_rows_of<6>,
                                   unit_rows_of<7>, unit_rows_of<8>};
  for (uint32_t row = 0; row < plan.n_rows; row += kMost) {
    const uint32_t rows = plan.n_rows - row < kMost ? plan.n_rows - row : kMost;
    kOf[rows - 1](plan, layer, in, inputs, weights, out, row);
  }
}

// The Chebyshev series of a normal number, by Clenshaw.
CONVOY_INLINE Wide chi_of(const ChiSeries& chi, const Wide& normal) {
  constexpr float kLargestNormal = 6.6f;
  const Wide twice = Wide::multiply(normal, Wide::all(2.0f / kLargestNormal));
  Wide last = Wide::all(0.0f), before = Wide::all(0.0f);
  for (size_t at = chi.coefficients.size() - 1; at > 0; --at) {
    const Wide next = Wide::fma(
        twice, last,
        Wide::add(Wide::all(chi.coefficients[at]), Wide::multiply(before, Wide::all(-1.0f))));
    before = last;
    last = next;
  }
  return Wide::fma(
      Wide::multiply(twice, Wide::all(0.5f)), last,
      Wide::add(Wide::all(chi.coefficients[0]), Wide::multiply(before, Wide::all(-1.0f))));
}

// Slots of the lower triangle by columns become a full square by columns, with chi variables on the diagonal.
inline void unpack_triangle(const FactorPlan& plan, const float* slots, float* square) {
  const Wide zero = Wide::all(0.0f);
  for (uint32_t col = 0; col < plan.n_rows; ++col)
    for (uint32_t row = 0; row < plan.n_rows; ++row, square += kFactorGuesses) {
      if (row < col) {
        zero.store(square);
        continue;
      }
      const Wide normal = Wide::load(slots);
      slots += kFactorGuesses;
      (row == col ? chi_of(plan.diagonal[row], normal) : normal).store(square);
    }
}

// Of as many of the sixteen guesses as a register has doubles.
using LaneDoubles = double __attribute__((vector_size(8 * kWideDoubles)));
using LaneFloats = float __attribute__((vector_size(4 * kWideDoubles)));

// Products of kRows rows with each other, of kWideDoubles guesses: gram[(col * rows + row) * 16 + lane] for row >= col.
template <uint32_t kRows>
CONVOY_INLINE void add_products(const float* in, uint32_t units, double* gram) {
  LaneDoubles sums[kRows * (kRows + 1) / 2] = {};
  for (uint32_t unit = 0; unit < units; ++unit, in += kRows * kFactorGuesses) {
    LaneDoubles values[kRows];
#pragma GCC unroll 8
    for (uint32_t row = 0; row < kRows; ++row) {
      LaneFloats narrow;
      __builtin_memcpy(&narrow, in + row * kFactorGuesses, sizeof narrow);
      values[row] = __builtin_convertvector(narrow, LaneDoubles);
    }
    uint32_t pair = 0;
#pragma GCC unroll 8
    for (uint32_t col = 0; col < kRows; ++col)
#pragma GCC unroll 8
      for (uint32_t row = col; row < kRows; ++row) sums[pair++] += values[row] * values[col];
  }
  uint32_t pair = 0;
  for (uint32_t col = 0; col < kRows; ++col)
    for (uint32_t row = col; row < kRows; ++row)
      __builtin_memcpy(gram + (col * kRows + row) * kFactorGuesses, &sums[pair++], sizeof sums[0]);
}

template <uint32_t kRows>
void gram_of_rows(const float* in, uint32_t units, double* gram) {
  for (uint32_t lane = 0; lane < kFactorGuesses; lane += kWideDoubles)
    add_products<kRows>(in + lane, units, gram + lane);
}

// The same for any number of rows, pair after pair.
inline void gram_of_many_rows(uint32_t rows, const float* in, uint32_t units, double* gram) {
  for (uint32_t col = 0; col < rows; ++col)
    for (uint32_t row = col; row < rows; ++row) {
      double sum[kFactorGuesses] = {};
      for (uint32_t unit = 0; unit < units; ++unit)
        for (uint32_t lane = 0; lane < kFactorGuesses; ++lane)
          sum[lane] += double{in[(size_t{unit} * rows + row) * kFactorGuesses + lane]} *
                       double{in[(size_t{unit} * rows + col) * kFactorGuesses + lane]};
      __builtin_memcpy(gram + (size_t{col} * rows + row) * kFactorGuesses, sum, sizeof sum);
    }
}

inline void gram_of_units(uint32_t rows, const float* in, uint32_t units, double* gram) {
  switch (rows) {
    case 2:
      return gram_of_rows<2>(in, units, gram);
    case 3:
      return gram_of_rows<3>(in, units, gram);
    case 4:
      return gram_of_rows<4>(in, units, gram);
    case 5:
      return gram_of_rows<5>(in, units, gram);
    case 6:
      return gram_of_rows<6>(in, units, gram);
    default:
      return gram_of_many_rows(rows, in, units, gram);
  }
}

// Replaces `units` units by the n_rows of the Cholesky factor of their Gram matrix: a Gaussian layer makes the same of
// both. A pivot within the rounding of its sum is taken for zero. factor[(col * n_rows + row) * 16 + lane].
inline void reduce_to_factor(const FactorPlan& plan, const float* in, uint32_t units,
                             double* factor, float* out) {
  constexpr double kRounding = 1e-14;
  const uint32_t rows = plan.n_rows;
  const auto at = [&](uint32_t row, uint32_t col) {
    return (size_t{col} * rows + row) * kFactorGuesses;
  };
  gram_of_units(rows, in, units, factor);
  for (uint32_t col = 0; col < rows; ++col)
    for (uint32_t row = 0; row < rows; ++row) {
      double* const to = factor + at(row, col);
      double sum[kFactorGuesses] = {}, least[kFactorGuesses] = {};
      for (uint32_t lane = 0; lane < kFactorGuesses && row >= col; ++lane) {
        sum[lane] = to[lane];
        least[lane] = kRounding * to[lane];
      }
      for (uint32_t inner = 0; inner < col && row >= col; ++inner)
        for (uint32_t lane = 0; lane < kFactorGuesses; ++lane)
          sum[lane] -= factor[at(row, inner) + lane] * factor[at(col, inner) + lane];
      const double* const pivot = factor + at(col, col);
      for (uint32_t lane = 0; lane < kFactorGuesses; ++lane) {
        if (row == col)
          to[lane] = sum[lane] > least[lane] ? __builtin_sqrt(sum[lane]) : 0;
        else
          to[lane] = pivot[lane] > 0 ? sum[lane] / pivot[lane] : 0;
        out[at(row, col) + lane] = static_cast<float>(to[lane]);
      }
    }
}

// Y of sixteen guesses, by columns. `memory.units(0)` or (1) holds it.
template <Precision kPrecision, bool kNormal>
CONVOY_INLINE float* make_matrices(const FactorPlan& plan, const AddressTables& tables,
                                   const GuessRegisters& guesses, FactorMemory& memory) {
  const float* in = nullptr;
  float *out = memory.units(0), *other = memory.units(1);
  for (const FactorPlan::Layer& layer : plan.layers) {
    uint32_t block = layer.first_block;
    const bool triangular = layer.hidden && !plan.diagonal.empty();
    const uint32_t together = triangular ? layer.outputs : units_together(layer.inputs);
    for (uint32_t unit = 0; unit < layer.outputs; unit += together) {
      const uint32_t units = layer.outputs - unit < together ? layer.outputs - unit : together;
      const uint32_t slots = triangular ? layer.num_slots : units * layer.inputs;
      const uint32_t blocks = (slots + kSlotsPerBlock - 1) / kSlotsPerBlock;
      make_slots<kPrecision, kNormal>(tables, guesses, block, blocks, memory.weights());
      block += blocks;
      const float* weights = memory.weights();
      if (triangular) {
        unpack_triangle(plan, memory.weights(), memory.unpacked());
        weights = memory.unpacked();
      }
      for (uint32_t at = 0; at < units; ++at)
        make_unit(plan, layer, in, layer.inputs,
                  weights + size_t{at} * layer.inputs * kFactorGuesses,
                  out + size_t{unit + at} * plan.n_rows * kFactorGuesses);
    }
    if (layer.hidden && plan.reduce) {
      reduce_to_factor(plan, out, layer.outputs, memory.factor(), other);
      std::swap(out, other);
    }
    in = out;
    std::swap(out, other);
  }
  return other;
}

inline void normalise(const FactorPlan& plan, float* y) {
  const uint32_t entries = plan.n_rows * plan.n_cols;
  Wide square = Wide::all(0.0f);
  for (uint32_t entry = 0; entry < entries; ++entry) {
    const Wide value = Wide::load(y + entry * kFactorGuesses);
    square = Wide::fma(value, value, square);
  }
  const Wide factor =
      Wide::divide(Wide::all(1.0f), Wide::add(Wide::root(square), Wide::all(plan.softening)));
  for (uint32_t entry = 0; entry < entries; ++entry)
    Wide::multiply(Wide::load(y + entry * kFactorGuesses), factor)
        .store(y + entry * kFactorGuesses);
}

// Squares only add up: the rest of the rows is left out once no lane can pass.
CONVOY_INLINE uint32_t check_rows(const FactorPlan& plan, const float* y) {
  constexpr size_t kRowsBetween = 4;
  const Wide limit = Wide::all(plan.limit);
  Wide sum = Wide::all(0.0f);
  uint32_t passing = (1u << kFactorGuesses) - 1;
  size_t since = 0;
  for (const CheckRow& row : plan.rows) {
    const float* const factors = plan.coefficients.data() + row.first_coefficient;
    const float* const entries = y + row.first_entry * kFactorGuesses;
    Wide residual = Wide::all(-row.target), second = Wide::all(0.0f);
    uint32_t at = 0;
    for (; at + 1 < row.num_entries; at += 2) {
      residual =
          Wide::fma(Wide::load(entries + at * kFactorGuesses), Wide::all(factors[at]), residual);
      second = Wide::fma(Wide::load(entries + (at + 1) * kFactorGuesses),
                         Wide::all(factors[at + 1]), second);
    }
    if (at < row.num_entries)
      residual =
          Wide::fma(Wide::load(entries + at * kFactorGuesses), Wide::all(factors[at]), residual);
    residual = Wide::add(residual, second);
    sum = Wide::fma(residual, residual, sum);
    if (++since < kRowsBetween) continue;
    since = 0;
    passing = Wide::below(sum, limit);
    if (passing == 0) return 0;
  }
  return Wide::below(sum, limit);
}

template <Precision kPrecision, bool kNormal>
uint32_t check_guesses(const FactorPlan& plan, const AddressTables& tables, uint32_t first,
                       FactorMemory& memory, float* y) {
  GuessRegisters guesses;
  load_guesses(guesses, tables, first);
  float* const made = make_matrices<kPrecision, kNormal>(plan, tables, guesses, memory);
  if (plan.normalize) normalise(plan, made);
  const uint32_t passed = check_rows(plan, made);
  if (passed != 0)
    for (uint32_t at = 0; at < plan.n_rows * plan.n_cols; ++at)
      Wide::load(made + at * kFactorGuesses).store(y + at * kFactorGuesses);
  return passed;
}

constexpr FactorKernels make_factor_kernels() {
  return {{{check_guesses<Precision::Exact, true>, check_guesses<Precision::Exact, false>},
           {check_guesses<Precision::Fast, true>, check_guesses<Precision::Fast, false>}}};
}
