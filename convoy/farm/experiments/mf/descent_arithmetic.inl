// SPDX-License-Identifier: Apache-2.0
//
// Activation functions of gradient descent over Doubles, which are vectors of doubles on CPUs and
// single doubles on GPUs. CPUs and GPUs use the same order of operations. Compiled without
// contraction of products and sums. Needs CONVOY_INLINE, Doubles, and Integers of the same size.

// Constants of GroupRMSprop.
constexpr double kDecay = 0.99, kEpsilon = 1e-6;

// to = e^x - 1 for 0 <= x <= 44: x = n ln 2 + r, with a Taylor polynomial up to r^13.
CONVOY_INLINE void exponential_less_one(Doubles& to, const Doubles& x) {
  // Adding it moves the integer part of a double into its lowest bits.
  constexpr double kShift = 0x1.8p52;
  constexpr double kLn2High = 0x1.62e42feep-1, kLn2Low = 0x1.a39ef35793c76p-33;
  const Doubles shifted = x * 1.4426950408889634 + kShift;
  const Doubles whole = shifted - kShift;
  const Doubles r = (x - whole * kLn2High) - whole * kLn2Low;
  Doubles sum = Doubles{} + 1.0 / 6227020800.0;
  constexpr double kTerms[] = {1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880,
                               1.0 / 40320,     1.0 / 5040,     1.0 / 720,     1.0 / 120,
                               1.0 / 24,        1.0 / 6,        0.5,           1.0};
#pragma GCC unroll 16
  for (const double term : kTerms) sum = sum * r + term;
  sum = sum * r;
  Integers bits;
  __builtin_memcpy(&bits, &shifted, sizeof bits);
  bits = (bits + 1023) << 52;
  Doubles power;
  __builtin_memcpy(&power, &bits, sizeof power);
  to = power * sum + (power - 1.0);
}

// to = tanh(value), with an error of a few units of the last place, also for tiny arguments.
CONVOY_INLINE void hyperbolic_tangent(Doubles& to, const Doubles& value) {
  const Doubles bound = Doubles{} + 22.0;
  Doubles size = value < 0.0 ? -value : value;
  size = size < bound ? size : bound;
  Doubles grown;
  exponential_less_one(grown, size * 2.0);
  const Doubles result = grown / (grown + 2.0);
  to = value < 0.0 ? -result : result;
  to = value == value ? to : value;
}

CONVOY_INLINE void activate(Doubles& value, MfActivation activation, const Doubles& slope) {
  if (activation == MfActivation::Tanh) {
    hyperbolic_tangent(value, value);
  } else if (activation == MfActivation::LeakyReLU) {
    value = value > 0.0 ? value : value * slope;
  }
}

// The derivative of the activation, computed from the activated value, which has the same sign as
// the value before the activation.
CONVOY_INLINE void differentiate(Doubles& to, const Doubles& value, MfActivation activation,
                                 const Doubles& slope) {
  to = Doubles{} + 1.0;
  if (activation == MfActivation::Tanh) to = to - value * value;
  if (activation == MfActivation::LeakyReLU) to = value > 0.0 ? to : slope;
}
