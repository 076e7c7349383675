// SPDX-License-Identifier: Apache-2.0
//
// A number in up to three forms at once: as a small fraction, by its residues modulo two primes
// near 2^61, and as a complex floating-point number with an error bound. The residues decide
// equality of rational numbers of any size without big integers: 5^(10^9) costs thirty
// multiplications. Two different numbers have equal residues with probability 2^-120.
#pragma once

#include <array>
#include <complex>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "convoy/data/answers/steps.h"

namespace convoy::answers {

using Real = long double;
inline constexpr Real kEpsilon = std::numeric_limits<Real>::epsilon();
using Complex = std::complex<Real>;

struct Fraction {
  int64_t above = 0;
  int64_t below = 1;  // positive, without a common factor
};

struct Number {
  Complex value = 0;
  Real error = 0;                         // bound of |value - true value|
  std::array<uint64_t, 2> residues = {};  // valid when `exact`
  bool exact = false;                     // true: rational, and `residues` are valid
  bool defined = true;                    // false: no value (1/0), or lost to rounding
  std::optional<Fraction> small = {};     // when numerator and denominator fit

  bool is_real() const;
  Real real() const { return value.real(); }
};

enum class Same { Yes, No, Unknown };
Same same(const Number& a, const Number& b);

Number undefined_number();
Number integer(int64_t value);
Number fraction(int64_t above, int64_t below);
Number approximation(Complex value, Real error);
Number unbounded(bool positive);
// Parses digits as the tokenizer writes them: "12", "-1", "0.5", "1.5e-3", "0.1|6" (the 6 repeats).
Number parse_digits(std::string_view digits);
// Parses the digits and letters of a base up to 36; empty when one is too large for the base.
std::optional<Number> parse_in_base(std::string_view digits, int64_t base);
// The value of a symbol at which polynomials are compared. The residues are independent of the
// value.
Number sample(std::array<uint64_t, 2> residues, Real value);

Number add(const Number& a, const Number& b);
Number multiply(const Number& a, const Number& b);
Number divide(const Number& a, const Number& b);
Number negate(const Number& a);
Number raise(const Number& base, const Number& exponent);
// The real root when it exists: the cube root of -8 is -2.
Number root(const Number& under, const Number& degree);
// Applies a function by its name: "sin", "floor", "factorial", "max", "log" (base 10, or the base
// in the second argument).
Number apply(std::string_view function, std::span<const Number> arguments, Steps& steps);

}  // namespace convoy::answers
