// SPDX-License-Identifier: Apache-2.0
//
// The shortcuts between the layers of sixteen guesses: triangular layers with chi variables on the
// diagonal, and Cholesky factors of Gram matrices. Matrices have the layout of factor_loops.inl.
// Needs Lanes and Wide.

// Evaluates the Chebyshev series at a normal number, with Clenshaw's recurrence.
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

// Unpacks the slots of a lower triangle, by columns, into a full square matrix by columns, with chi
// variables on the diagonal.
inline void unpack_triangle(const FactorSizes& sizes, const float* slots, float* square) {
  const Wide zero = Wide::all(0.0f);
  for (uint32_t col = 0; col < sizes.n_rows; ++col)
    for (uint32_t row = 0; row < sizes.n_rows; ++row, square += kFactorGuesses) {
      if (row < col) {
        zero.store(square);
        continue;
      }
      const Wide normal = Wide::load(slots);
      slots += kFactorGuesses;
      (row == col ? chi_of(sizes.diagonal[row], normal) : normal).store(square);
    }
}

// A vector of doubles that fills a register. It has one number each for kWideDoubles of the sixteen
// guesses.
using LaneDoubles = double __attribute__((vector_size(8 * kWideDoubles)));
using LaneFloats = float __attribute__((vector_size(4 * kWideDoubles)));

// Computes the products of kRows rows with each other for kWideDoubles guesses: gram[(col * rows +
// row) * 16 + lane] for row >= col.
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

// Computes the same products for any number of rows, one pair of rows after another.
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

// Replaces `units` units by the n_rows units of the Cholesky factor of their Gram matrix: a
// Gaussian layer after it has the same distribution. A pivot within the rounding error of its sum
// counts as zero. The layout is factor[(col * n_rows + row) * 16 + lane].
inline void reduce_to_factor(const FactorSizes& sizes, const float* in, uint32_t units,
                             double* factor, float* out) {
  constexpr double kRounding = 1e-14;
  const uint32_t rows = sizes.n_rows;
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
