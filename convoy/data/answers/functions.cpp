// SPDX-License-Identifier: Apache-2.0
//
// Applies functions such as sin and floor to numbers.
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "convoy/data/answers/number.h"

namespace convoy::answers {
namespace {

constexpr int64_t kLargestFactorial = 20'000;

using RealFunction = Real (*)(Real);

struct FunctionEntry {
  std::string_view name;
  RealFunction function;
};

constexpr FunctionEntry kRealFunctions[] = {
    {"sin", [](Real x) { return std::sin(x); }},
    {"cos", [](Real x) { return std::cos(x); }},
    {"tan", [](Real x) { return std::tan(x); }},
    {"cot", [](Real x) { return std::cos(x) / std::sin(x); }},
    {"sec", [](Real x) { return 1 / std::cos(x); }},
    {"csc", [](Real x) { return 1 / std::sin(x); }},
    {"arcsin", [](Real x) { return std::asin(x); }},
    {"arccos", [](Real x) { return std::acos(x); }},
    {"arctan", [](Real x) { return std::atan(x); }},
    {"arccot", [](Real x) { return std::numbers::pi_v<Real> / 2 - std::atan(x); }},
    {"sinh", [](Real x) { return std::sinh(x); }},
    {"cosh", [](Real x) { return std::cosh(x); }},
    {"tanh", [](Real x) { return std::tanh(x); }},
    {"ln", [](Real x) { return std::log(x); }},
    {"exp", [](Real x) { return std::exp(x); }},
    {"cbrt", [](Real x) { return std::cbrt(x); }},
};

// The error of the argument is multiplied by a slope, which is measured with a step of 1e-9.
// Rounding errors are far below this step.
Number real_value(RealFunction function, const Number& argument) {
  if (!argument.is_real() || std::isinf(argument.real())) return undefined_number();
  const Real x = argument.real();
  const Real y = function(x);
  const Real step = std::max(std::abs(x), Real(1)) * Real(1e-9);
  const Real ahead = function(x + step);
  const Real behind = function(x - step);
  Real slope = 0;
  if (std::isfinite(ahead)) slope = std::max(slope, std::abs(ahead - y) / step);
  if (std::isfinite(behind)) slope = std::max(slope, std::abs(y - behind) / step);
  if (!std::isfinite(y) || slope > Real(1e7)) return undefined_number();  // near a pole
  const Real error = argument.error + kEpsilon * std::abs(x);
  return approximation(y, slope * error + 4 * kEpsilon * (std::abs(y) + kEpsilon));
}

Number factorial(const Number& argument, Steps& steps) {
  if (argument.small && argument.small->below == 1 && argument.small->above >= 0) {
    const int64_t count = argument.small->above;
    if (count > kLargestFactorial || !steps.take(count / 2)) return undefined_number();
    Number result = integer(1);
    for (int64_t factor = 2; factor <= count; ++factor) result = multiply(result, integer(factor));
    return result;
  }
  if (!argument.is_real() || argument.real() < 0 || argument.real() > 1000)
    return undefined_number();
  const Real value = std::tgamma(argument.real() + 1);
  return approximation(value, value * (argument.error * 8 + 256 * kEpsilon));
}

Number binomial(const Number& above, const Number& below, Steps& steps) {
  if (below.small && below.small->below == 1 && below.small->above >= 0) {
    const int64_t count = below.small->above;
    if (count > kLargestFactorial || !steps.take(count / 2)) return undefined_number();
    Number result = integer(1);
    for (int64_t index = 0; index < count; ++index)
      result = divide(multiply(result, add(above, integer(-index))), integer(index + 1));
    return result;
  }
  return divide(factorial(above, steps),
                multiply(factorial(below, steps), factorial(add(above, negate(below)), steps)));
}

Number logarithm(const Number& argument, const Number& base) {
  const RealFunction ln = [](Real x) { return std::log(x); };
  return divide(real_value(ln, argument), real_value(ln, base));
}

Number rounded(const Number& argument, bool up) {
  if (argument.small) {
    const int64_t above = argument.small->above;
    const int64_t below = argument.small->below;
    int64_t quotient = above / below;
    if (above % below != 0 && (above < 0) != up) quotient += up ? 1 : -1;
    return integer(quotient);
  }
  if (!argument.is_real() || std::abs(argument.real()) > Real(1e15)) return undefined_number();
  const Real value = up ? std::ceil(argument.real()) : std::floor(argument.real());
  const Real nearest = std::round(argument.real());
  if (std::abs(nearest - argument.real()) <= 8 * argument.error + kEpsilon)
    return integer(static_cast<int64_t>(nearest));
  return integer(static_cast<int64_t>(value));
}

Number magnitude(const Number& argument) {
  if (argument.small) return fraction(std::abs(argument.small->above), argument.small->below);
  return approximation(std::abs(argument.value),
                       argument.error + kEpsilon * std::abs(argument.value));
}

Number extreme(std::span<const Number> arguments, bool largest) {
  const Number* best = nullptr;
  for (const Number& argument : arguments) {
    if (!argument.defined || !argument.is_real()) return undefined_number();
    if (best == nullptr || (argument.real() > best->real()) == largest) best = &argument;
  }
  return best == nullptr ? undefined_number() : *best;
}

Number divisor_function(std::span<const Number> arguments, bool greatest) {
  int64_t result = 0;
  for (const Number& argument : arguments) {
    if (!argument.small || argument.small->below != 1) return undefined_number();
    const int64_t value = std::abs(argument.small->above);
    if (greatest || result == 0) {
      result = std::gcd(result, value);
    } else if (const int64_t common = std::gcd(result, value);
               common == 0 || __builtin_mul_overflow(result / common, value, &result)) {
      return undefined_number();
    }
  }
  return integer(result);
}

// The remainder from 0 to divisor - 1; undefined unless both are integers.
Number remainder(const Number& value, const Number& divisor) {
  if (!value.small || !divisor.small || value.small->below != 1 || divisor.small->below != 1 ||
      divisor.small->above <= 0)
    return undefined_number();
  const int64_t rest = value.small->above % divisor.small->above;
  return integer(rest < 0 ? rest + divisor.small->above : rest);
}

}  // namespace

Number apply(std::string_view function, std::span<const Number> arguments, Steps& steps) {
  for (const Number& argument : arguments)
    if (!argument.defined) return undefined_number();
  if (arguments.empty()) return undefined_number();
  const Number& first = arguments[0];
  if (function == "max" || function == "min") return extreme(arguments, function == "max");
  if (function == "gcd" || function == "lcm") return divisor_function(arguments, function == "gcd");
  if (arguments.size() == 2) {
    if (function == "root") return root(first, arguments[1]);
    if (function == "binom") return binomial(first, arguments[1], steps);
    if (function == "log") return logarithm(first, arguments[1]);
    if (function == "mod") return remainder(first, arguments[1]);
    return undefined_number();
  }
  if (arguments.size() != 1) return undefined_number();
  if (function == "log") return logarithm(first, integer(10));
  if (function == "factorial") return factorial(first, steps);
  if (function == "abs") return magnitude(first);
  if (function == "floor" || function == "ceil") return rounded(first, function == "ceil");
  if (function == "exp" && first.small && first.small->above == 0) return integer(1);
  for (const FunctionEntry& entry : kRealFunctions)
    if (entry.name == function) return real_value(entry.function, first);
  return undefined_number();
}

}  // namespace convoy::answers
