// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/random/chi_series.h"

#include <cmath>

namespace convoy::experiments {
namespace {

constexpr double kLargestNormal = 6.6;
constexpr int kNodes = 64;

struct GammaShares {
  double lower, upper;  // regularised incomplete gamma functions P and Q
};

// Computes the shares by their series below the mode and by their continued fraction (Lentz) above
// it.
GammaShares gamma_shares(double shape, double x) {
  if (x <= 0) return {0, 1};
  constexpr int kMostTerms = 100'000;
  constexpr double kEnough = 1e-16, kTiny = 1e-300;
  const double front = std::exp(shape * std::log(x) - x - std::lgamma(shape));
  if (x < shape + 1) {
    double term = 1 / shape, sum = term;
    for (int at = 1; at < kMostTerms && term > kEnough * sum; ++at) sum += term *= x / (shape + at);
    const double lower = front * sum;
    return {lower, 1 - lower};
  }
  double b = x + 1 - shape, c = 1 / kTiny, d = 1 / b, fraction = d;
  for (int at = 1; at < kMostTerms; ++at) {
    const double a = -at * (at - shape);
    b += 2;
    d = a * d + b;
    d = 1 / (std::abs(d) < kTiny ? kTiny : d);
    c = b + a / c;
    if (std::abs(c) < kTiny) c = kTiny;
    fraction *= d * c;
    if (std::abs(d * c - 1) < kEnough) break;
  }
  const double upper = front * fraction;
  return {1 - upper, upper};
}

// The chi quantile at the level of a normal number. It is computed from the smaller tail, so that
// no digits are lost.
double chi_at(uint32_t degrees, double normal) {
  const double share = 0.5 * std::erfc(std::abs(normal) / std::sqrt(2.0));
  const double shape = 0.5 * degrees;
  double low = 0, high = std::sqrt(static_cast<double>(degrees)) + 12;
  for (int turn = 0; turn < 200 && high - low > 1e-14 * high; ++turn) {
    const double middle = 0.5 * (low + high);
    const GammaShares shares = gamma_shares(shape, 0.5 * middle * middle);
    const bool above = normal < 0 ? shares.lower > share : shares.upper < share;
    (above ? high : low) = middle;
  }
  return 0.5 * (low + high);
}

}  // namespace

double ChiSeries::at(double normal) const {
  const double x = normal / kLargestNormal;
  double one = 0, two = 0;  // state of Clenshaw's recurrence
  for (size_t order = coefficients.size(); order-- > 1;) {
    const double next = 2 * x * one - two + static_cast<double>(coefficients[order]);
    two = one;
    one = next;
  }
  return x * one - two + static_cast<double>(coefficients[0]);
}

ChiSeries chi_series(uint32_t degrees) {
  constexpr double kNegligible = 2e-8;
  double values[kNodes];
  for (int node = 0; node < kNodes; ++node)
    values[node] = chi_at(degrees, kLargestNormal * std::cos(M_PI * (node + 0.5) / kNodes));
  ChiSeries series;
  for (int order = 0; order < kNodes; ++order) {
    double sum = 0;
    for (int node = 0; node < kNodes; ++node)
      sum += values[node] * std::cos(M_PI * order * (node + 0.5) / kNodes);
    series.coefficients.push_back(static_cast<float>((order == 0 ? 1 : 2) * sum / kNodes));
  }
  while (series.coefficients.size() > 2 && std::abs(series.coefficients.back()) < kNegligible)
    series.coefficients.pop_back();
  return series;
}

}  // namespace convoy::experiments
