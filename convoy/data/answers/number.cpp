// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/answers/number.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "convoy/data/answers/letters.h"

namespace convoy::answers {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::array<uint64_t, 2> kPrimes = {2305843009213693951ULL, 2305843009213693921ULL};
constexpr Real kInfinity = std::numeric_limits<Real>::infinity();

uint64_t times(uint64_t a, uint64_t b, uint64_t prime) {
  return static_cast<uint64_t>(static_cast<Wide>(a) * b % prime);
}

uint64_t to_the(uint64_t base, uint64_t exponent, uint64_t prime) {
  uint64_t result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result = times(result, base, prime);
    base = times(base, base, prime);
  }
  return result;
}

uint64_t inverse(uint64_t value, uint64_t prime) { return to_the(value, prime - 2, prime); }

uint64_t residue(int64_t value, uint64_t prime) {
  const uint64_t magnitude =
      value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  const uint64_t rest = magnitude % prime;
  return value < 0 && rest > 0 ? prime - rest : rest;
}

std::optional<Fraction> reduced(int64_t above, int64_t below) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  if (below == 0 || above == kLeast || below == kLeast) return std::nullopt;
  if (below < 0) {
    above = -above;
    below = -below;
  }
  const int64_t common = std::gcd(above, below);
  return Fraction{above / common, below / common};
}

std::optional<Fraction> sum_of(const Fraction& a, const Fraction& b) {
  int64_t left = 0;
  int64_t right = 0;
  int64_t above = 0;
  int64_t below = 0;
  if (__builtin_mul_overflow(a.above, b.below, &left) ||
      __builtin_mul_overflow(b.above, a.below, &right) ||
      __builtin_add_overflow(left, right, &above) ||
      __builtin_mul_overflow(a.below, b.below, &below))
    return std::nullopt;
  return reduced(above, below);
}

std::optional<Fraction> product_of(const Fraction& a, const Fraction& b) {
  int64_t above = 0;
  int64_t below = 0;
  if (__builtin_mul_overflow(a.above, b.above, &above) ||
      __builtin_mul_overflow(a.below, b.below, &below))
    return std::nullopt;
  return reduced(above, below);
}

Real rounding(Complex value) { return 2 * kEpsilon * std::abs(value); }

// A floating-point value that overflowed or lost its digits is undefined, unless the number has
// residues.
Number checked(Number number) {
  if (!number.exact && number.defined &&
      (std::isnan(number.value.real()) || std::isnan(number.value.imag()) ||
       std::isnan(number.error)))
    number.defined = false;
  return number;
}

Number from_fraction(const Fraction& fraction) {
  Number number;
  number.value = static_cast<Real>(fraction.above) / static_cast<Real>(fraction.below);
  number.error = rounding(number.value);
  number.exact = true;
  number.small = fraction;
  for (size_t index = 0; index < kPrimes.size(); ++index) {
    const uint64_t prime = kPrimes[index];
    number.residues[index] = residue(fraction.above, prime);
    if (fraction.below != 1)
      number.residues[index] =
          times(number.residues[index], inverse(residue(fraction.below, prime), prime), prime);
  }
  return number;
}

// True for infinity itself, not for a number that is too large for a floating-point type.
bool is_endless(const Number& number) { return !number.exact && std::isinf(number.value.real()); }

bool is_zero(const Number& number) {
  if (number.exact) return number.residues == std::array<uint64_t, 2>{};
  return std::abs(number.value) <= number.error;
}

Number exact_power(const Number& base, int64_t exponent) {
  Number result;
  const uint64_t magnitude =
      exponent < 0 ? 0 - static_cast<uint64_t>(exponent) : static_cast<uint64_t>(exponent);
  result.value = std::pow(base.value, static_cast<Real>(exponent));
  if (base.value.imag() == 0)
    result.value = std::pow(base.value.real(), static_cast<Real>(exponent));
  result.error = std::abs(result.value) * static_cast<Real>(magnitude) *
                     (base.error / std::max(std::abs(base.value), base.error + kEpsilon)) +
                 rounding(result.value) * (8 + static_cast<Real>(magnitude));
  result.exact = base.exact;
  for (size_t index = 0; base.exact && index < kPrimes.size(); ++index) {
    result.residues[index] = to_the(base.residues[index], magnitude, kPrimes[index]);
    if (exponent < 0) result.residues[index] = inverse(result.residues[index], kPrimes[index]);
  }
  if (base.small && magnitude <= 64) {
    std::optional<Fraction> small = Fraction{1, 1};
    for (uint64_t count = 0; small && count < magnitude; ++count)
      small = product_of(*small, *base.small);
    if (small && exponent < 0) small = reduced(small->below, small->above);
    result.small = small;
  }
  if (result.small) return from_fraction(*result.small);
  if (!result.exact && std::isinf(result.value.real())) return undefined_number();
  return checked(result);
}

std::optional<int64_t> integer_root(int64_t value, int64_t degree) {
  if (value < 0 || degree < 1 || degree > 62) return std::nullopt;
  const auto guess = static_cast<int64_t>(
      std::llround(std::pow(static_cast<Real>(value), 1 / static_cast<Real>(degree))));
  for (int64_t candidate = std::max<int64_t>(0, guess - 1); candidate <= guess + 1; ++candidate) {
    int64_t power = 1;
    bool fits = true;
    for (int64_t count = 0; fits && count < degree; ++count)
      fits = !__builtin_mul_overflow(power, candidate, &power);
    if (fits && power == value) return candidate;
  }
  return std::nullopt;
}

}  // namespace

bool Number::is_real() const {
  return exact || std::isinf(value.real()) ||
         std::abs(value.imag()) <= 4 * error + 8 * kEpsilon * std::abs(value);
}

Same same(const Number& a, const Number& b) {
  if (!a.defined || !b.defined) return Same::Unknown;
  if (a.exact && b.exact) return a.residues == b.residues ? Same::Yes : Same::No;
  const bool endless = std::isinf(a.value.real()) || std::isinf(b.value.real());
  if (endless)
    return a.value.real() == b.value.real() && !a.exact && !b.exact ? Same::Yes : Same::No;
  const Real error = a.error + b.error;
  const Real larger = std::max(std::abs(a.value), std::abs(b.value));
  const Real apart = std::abs(a.value - b.value);
  // With a larger error the bound says more about the computation than about the numbers.
  if (error > Real(1e-9) * std::max(larger, Real(1e-9)))
    return apart <= error ? Same::Unknown : Same::No;
  return apart <= 4 * error + 64 * kEpsilon * larger ? Same::Yes : Same::No;
}

Number undefined_number() {
  Number number;
  number.defined = false;
  return number;
}

Number integer(int64_t value) { return fraction(value, 1); }

Number fraction(int64_t above, int64_t below) {
  const std::optional<Fraction> small = reduced(above, below);
  return small ? from_fraction(*small) : undefined_number();
}

Number approximation(Complex value, Real error) {
  Number number;
  number.value = value;
  number.error = error;
  return checked(number);
}

Number unbounded(bool positive) { return approximation(positive ? kInfinity : -kInfinity, 0); }

Number sample(std::array<uint64_t, 2> residues, Real value) {
  Number number;
  number.value = value;
  number.error = 0;
  number.exact = true;
  for (size_t index = 0; index < kPrimes.size(); ++index)
    number.residues[index] = residues[index] % kPrimes[index];
  return number;
}

Number add(const Number& a, const Number& b) {
  if (!a.defined || !b.defined) return undefined_number();
  if (is_endless(a) || is_endless(b)) {
    if (is_endless(a) && is_endless(b) && a.real() != b.real()) return undefined_number();
    return is_endless(a) ? a : b;
  }
  if (a.small && b.small)
    if (const std::optional<Fraction> small = sum_of(*a.small, *b.small))
      return from_fraction(*small);
  Number sum;
  sum.value = a.value + b.value;
  sum.error = a.error + b.error + rounding(sum.value);
  sum.exact = a.exact && b.exact;
  for (size_t index = 0; sum.exact && index < kPrimes.size(); ++index)
    sum.residues[index] = (a.residues[index] + b.residues[index]) % kPrimes[index];
  return checked(sum);
}

Number multiply(const Number& a, const Number& b) {
  if (!a.defined || !b.defined) return undefined_number();
  if (is_endless(a) || is_endless(b)) {
    if (is_zero(a) || is_zero(b) || !a.is_real() || !b.is_real()) return undefined_number();
    return unbounded((a.real() > 0) == (b.real() > 0));
  }
  if (a.small && b.small)
    if (const std::optional<Fraction> small = product_of(*a.small, *b.small))
      return from_fraction(*small);
  Number product;
  product.value = a.value * b.value;
  if (a.value.imag() == 0 && b.value.imag() == 0) product.value = a.value.real() * b.value.real();
  product.error = std::abs(a.value) * b.error + std::abs(b.value) * a.error + a.error * b.error +
                  rounding(product.value);
  product.exact = a.exact && b.exact;
  for (size_t index = 0; product.exact && index < kPrimes.size(); ++index)
    product.residues[index] = times(a.residues[index], b.residues[index], kPrimes[index]);
  return checked(product);
}

Number divide(const Number& a, const Number& b) {
  if (!a.defined || !b.defined || is_zero(b)) return undefined_number();
  if (is_endless(b)) return is_endless(a) ? undefined_number() : integer(0);
  if (b.small)
    if (const std::optional<Fraction> small = reduced(b.small->below, b.small->above))
      return multiply(a, from_fraction(*small));
  Number quotient;
  quotient.value = a.value / b.value;
  const Real below = std::abs(b.value);
  quotient.error =
      a.error / below + std::abs(quotient.value) * (b.error / below) + rounding(quotient.value);
  quotient.exact = a.exact && b.exact && b.residues[0] != 0 && b.residues[1] != 0;
  for (size_t index = 0; quotient.exact && index < kPrimes.size(); ++index)
    quotient.residues[index] =
        times(a.residues[index], inverse(b.residues[index], kPrimes[index]), kPrimes[index]);
  return checked(quotient);
}

Number negate(const Number& a) { return multiply(a, integer(-1)); }

Number root(const Number& under, const Number& degree) {
  if (!under.defined || !degree.defined || is_zero(degree)) return undefined_number();
  const bool whole = degree.small && degree.small->below == 1;
  if (whole && under.small) {
    const int64_t order = degree.small->above;
    const bool negative = under.small->above < 0;
    const std::optional<int64_t> above =
        integer_root(negative ? -under.small->above : under.small->above, order);
    const std::optional<int64_t> below = integer_root(under.small->below, order);
    if (above && below && (!negative || order % 2 == 1))
      return fraction(negative ? -*above : *above, *below);
  }
  if (whole && degree.small->above % 2 != 0 && under.is_real() && under.real() < 0)
    return negate(raise(negate(under), divide(integer(1), degree)));
  return raise(under, divide(integer(1), degree));
}

Number raise(const Number& base, const Number& exponent) {
  if (!base.defined || !exponent.defined || is_endless(base) || is_endless(exponent))
    return undefined_number();
  const bool whole = exponent.small && exponent.small->below == 1;
  if (is_zero(base)) {
    if (exponent.is_real() && exponent.real() > 0) return integer(0);
    return whole && exponent.small->above == 0 ? integer(1) : undefined_number();
  }
  if (whole) return exact_power(base, exponent.small->above);
  if (exponent.small && base.small) {  // roots such as 8^{2/3} and (-8)^{1/3}
    const int64_t order = exponent.small->below;
    const bool negative = base.small->above < 0;
    const std::optional<int64_t> above =
        integer_root(negative ? -base.small->above : base.small->above, order);
    const std::optional<int64_t> below = integer_root(base.small->below, order);
    if (above && below && (!negative || order % 2 == 1))
      return exact_power(fraction(negative ? -*above : *above, *below), exponent.small->above);
  }
  const bool odd_root = exponent.small && exponent.small->below % 2 != 0;
  Complex value;
  if (base.is_real() && exponent.is_real() && (base.real() > 0 || odd_root)) {
    value = std::pow(std::abs(base.real()), exponent.real());
    if (base.real() < 0 && exponent.small->above % 2 != 0) value = -value;
  } else {
    value = std::pow(base.value, exponent.value);
  }
  const Real log_base = std::abs(std::log(base.value));
  const Real relative = std::abs(exponent.value) * base.error / std::abs(base.value) +
                        log_base * exponent.error +
                        4 * kEpsilon * (1 + std::abs(exponent.value) * log_base);
  if (std::isinf(value.real())) return undefined_number();
  return approximation(value, std::abs(value) * relative);
}

namespace {

// Parses digits, fifteen at a time. `nines`: every digit counts as a 9.
Number whole_number(std::string_view digits, bool nines) {
  constexpr size_t kChunk = 15;
  Number number = integer(0);
  for (size_t begin = 0; begin < digits.size(); begin += kChunk) {
    int64_t chunk = 0;
    int64_t scale = 1;
    for (const char letter : digits.substr(begin, kChunk)) {
      chunk = chunk * 10 + (nines ? 9 : letter - '0');
      scale *= 10;
    }
    number = begin == 0 ? integer(chunk) : add(multiply(number, integer(scale)), integer(chunk));
  }
  return number;
}

// The exponent of a text such as "e-3": -3. A huge value is clamped.
int64_t read_exponent(std::string_view text) {
  int64_t exponent = 0;
  for (const char letter : text)
    if (is_digit(letter)) exponent = std::min<int64_t>(exponent * 10 + (letter - '0'), 100'000);
  return text.find('-') == std::string_view::npos ? exponent : -exponent;
}

}  // namespace

Number parse_digits(std::string_view digits) {
  int64_t exponent = 0;
  if (const size_t at = digits.find('e'); at != std::string_view::npos) {
    exponent = read_exponent(digits.substr(at));
    digits = digits.substr(0, at);
  }
  std::string_view again;
  if (const size_t at = digits.find('|'); at != std::string_view::npos) {
    again = digits.substr(at + 1);
    digits = digits.substr(0, at);
  }
  const bool negative = digits.starts_with('-');
  if (negative) digits.remove_prefix(1);
  const size_t point = std::min(digits.find('.'), digits.size());
  const std::string_view places = digits.substr(std::min(point + 1, digits.size()));
  exponent -= static_cast<int64_t>(places.size());
  Number number = whole_number(std::string(digits.substr(0, point)).append(places), false);
  if (!again.empty())  // the repeating digits over as many nines
    number = add(number, divide(whole_number(again, false), whole_number(again, true)));
  if (negative) number = negate(number);
  return exponent == 0 ? number : multiply(number, exact_power(integer(10), exponent));
}

std::optional<Number> parse_in_base(std::string_view digits, int64_t base) {
  if (base < 2 || base > 36 || digits.empty()) return std::nullopt;
  Number number = integer(0);
  for (const char letter : digits) {
    const int64_t digit = is_digit(letter)    ? letter - '0'
                          : is_letter(letter) ? lower(letter) - 'a' + 10
                                              : base;
    if (digit >= base) return std::nullopt;
    number = add(multiply(number, integer(base)), integer(digit));
  }
  return number;
}

}  // namespace convoy::answers
