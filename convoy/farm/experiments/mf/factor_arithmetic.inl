// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of guessed factorisations over Wide. CPUs and GPUs use the same order of
// operations. Needs Lanes, normal_transform.inl, philox_lanes.inl, Wide.

// The four slots of a block: slots 0 and 1, then slots 2 and 3.
template <Precision kPrecision, bool kNormal>
CONVOY_INLINE NormalPair four_slots(const WordPair& words) {
  if constexpr (kNormal) {
    return normal_pair<kPrecision>(words.even, words.odd);
  } else {
    const Lanes::Floats scale = Lanes::all(0x1p-31f);
    return {Lanes::multiply(Lanes::odd_to_float(words.even), scale),
            Lanes::multiply(Lanes::odd_to_float(words.odd), scale)};
  }
}

// tanh with a relative error of at most 4e-7: a minimax quotient of polynomials up to 7.9, where
// tanh is 1 to a float's precision.
CONVOY_INLINE Wide wide_tanh(const Wide& value) {
  constexpr float kBound = 7.9f;
  constexpr float kAbove[] = {1.0f, 0.1345062553882599f, 0.00357899721711874f,
                              2.2022330529918894e-05f, 1.542809435761683e-08f};
  constexpr float kBelow[] = {1.0f, 0.4678395390510559f, 0.026192257180809975f,
                              0.0003423658781684935f, 8.598829026595922e-07f};
  const Wide x = Wide::larger(Wide::smaller(value, Wide::all(kBound)), Wide::all(-kBound));
  const Wide square = Wide::multiply(x, x);
  Wide above = Wide::all(kAbove[4]), below = Wide::all(kBelow[4]);
#pragma GCC unroll 4
  for (int at = 3; at >= 0; --at) {
    above = Wide::fma(above, square, Wide::all(kAbove[at]));
    below = Wide::fma(below, square, Wide::all(kBelow[at]));
  }
  return Wide::divide(Wide::multiply(x, above), below);
}

CONVOY_INLINE Wide activated(MfActivation activation, float negative_slope, const Wide& value) {
  if (activation == MfActivation::Linear) return value;
  if (activation == MfActivation::Tanh) return wide_tanh(value);
  const Wide zero = Wide::all(0.0f);
  return Wide::fma(Wide::all(negative_slope), Wide::smaller(value, zero),
                   Wide::larger(value, zero));
}

// The factor that normalises Y. entry(n): entry n of Y.
template <class Entry>
CONVOY_INLINE Wide norm_factor(uint32_t num_entries, float softening, const Entry& entry) {
  Wide square = Wide::all(0.0f);
  for (uint32_t at = 0; at < num_entries; ++at) {
    const Wide value = entry(at);
    square = Wide::fma(value, value, square);
  }
  return Wide::divide(Wide::all(1.0f), Wide::add(Wide::root(square), Wide::all(softening)));
}

// The residual of one row. `coefficients` holds the coefficients of all rows.
template <class Entry>
CONVOY_INLINE Wide row_residual(const CheckRow& row, const float* coefficients,
                                const Entry& entry) {
  const float* const factors = coefficients + row.first_coefficient;
  Wide residual = Wide::all(-row.target), second = Wide::all(0.0f);
  uint32_t at = 0;
  for (; at + 1 < row.num_entries; at += 2) {
    residual = Wide::fma(entry(row.first_entry + at), Wide::all(factors[at]), residual);
    second = Wide::fma(entry(row.first_entry + at + 1), Wide::all(factors[at + 1]), second);
  }
  if (at < row.num_entries)
    residual = Wide::fma(entry(row.first_entry + at), Wide::all(factors[at]), residual);
  return Wide::add(residual, second);
}
