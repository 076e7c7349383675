// SPDX-License-Identifier: Apache-2.0
//
// A step of gradient descent over Doubles, which are vectors of doubles on CPUs and single doubles
// on GPUs. CPUs and GPUs use the same order of operations. Compiled without contraction of products
// and sums. Needs CONVOY_INLINE and Doubles.

// to = d loss / d a = sum of slope[m - 1] a^(m - 1), with a = `value`.
CONVOY_INLINE void gradient(Doubles& to, const Doubles& value, const double* slope,
                            uint32_t num_powers) {
  to = Doubles{} + slope[num_powers - 1];
  for (uint32_t at = num_powers - 1; at-- > 0;) to = to * value + slope[at];
}

CONVOY_INLINE void add_moments(Doubles& first, Doubles& second, const Doubles& slope) {
  constexpr double kReverse1 = 1 - kBeta1, kReverse2 = 1 - kBeta2;
  first = first * kBeta1 + slope * kReverse1;
  second = second * kBeta2 + slope * slope * kReverse2;
}

// `root`: the square root of the second moment.
CONVOY_INLINE void adam_update(Doubles& value, const Doubles& first, const Doubles& root, double lr,
                               double root_correction) {
  value -= lr * first / (root / root_correction + kAdamEpsilon);
}
