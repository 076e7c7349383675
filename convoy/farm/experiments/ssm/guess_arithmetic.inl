// SPDX-License-Identifier: Apache-2.0
//
// Computes losses from power sums, in double precision. CPUs and GPUs use the same order of
// operations. `Value` is a double, or a vector of doubles that holds several guesses. Compiled
// without contraction of products and sums. Needs CONVOY_INLINE.

// Computes s_m. `scale` is prior_sd^m.
template <class Value>
CONVOY_INLINE void guess_residual(Value& s, const Value& sum, double scale, double target) {
  s = sum * scale - target;
}

// Adds (row . s)^2 to `loss`. The sum uses s_m only where bit m - 1 of `powers` is set and the
// entry of `row` is not 0.
template <class Value>
CONVOY_INLINE void add_squared_row(Value& loss, const double* row, const Value* s, uint32_t powers,
                                   uint32_t num_powers) {
  Value dot = {};
  for (uint32_t at = 0; at < num_powers; ++at)
    if (((powers >> at) & 1u) && row[at] != 0) dot += row[at] * s[at];
  loss += dot * dot;
}

template <class Value>
CONVOY_INLINE void add_squares(Value& loss, const Value* s, uint32_t num_powers) {
  for (uint32_t at = 0; at < num_powers; ++at) loss += s[at] * s[at];
}
