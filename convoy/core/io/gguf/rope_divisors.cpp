// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/io/gguf/rope_divisors.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace convoy::gguf {
namespace {

// Computes in fp32, as llama.cpp's converter does with torch.
float frequency(double theta, int64_t pair, int64_t head_dim) {
  const float exponent = static_cast<float>(2 * pair) / static_cast<float>(head_dim);
  return 1.0f / std::pow(static_cast<float>(theta), exponent);
}

bool are_close(std::span<const float> left, std::span<const float> right) {
  constexpr float kRelative = 1e-5f;
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](float a, float b) { return std::fabs(a - b) <= kRelative * std::fabs(b); });
}

// Finds a rule for these divisors. Only the ratios of the three numbers count, so low_freq_factor
// is 1. Between the two ends, the share of the undivided frequency is linear in the frequency, so
// the line through two points gives both ends.
std::optional<Llama3Rope> fitted(std::span<const float> divisors, double theta, double factor) {
  const auto head_dim = static_cast<int64_t>(2 * divisors.size());
  std::vector<std::pair<double, double>> points;
  for (size_t pair = 0; pair < divisors.size(); ++pair) {
    const double divisor = divisors[pair];
    if (divisor <= 1.0 + 1e-6 || divisor >= factor * (1.0 - 1e-6)) continue;
    const double turns =
        static_cast<double>(frequency(theta, static_cast<int64_t>(pair), head_dim)) /
        (2 * std::numbers::pi);
    points.emplace_back(turns, (1 / divisor - 1 / factor) / (1 - 1 / factor));
  }
  if (points.size() < 2) return std::nullopt;
  const auto [first_x, first_y] = points.front();
  const auto [last_x, last_y] = points.back();
  const double slope = (last_y - first_y) / (last_x - first_x);
  const double zero = first_x - first_y / slope;  // turns at which the share is 0: low / original
  const double one = zero + 1 / slope;
  if (!(zero > 0) || !(one > zero)) return std::nullopt;
  return Llama3Rope{.factor = factor,
                    .low_freq_factor = 1.0,
                    .high_freq_factor = std::round(one / zero * 1e4) / 1e4,
                    .original_max_positions = std::llround(1 / zero)};
}

}  // namespace

std::vector<float> rope_divisors(const Llama3Rope& rope, double theta, int64_t head_dim) {
  const double original = static_cast<double>(rope.original_max_positions);
  const double low_wavelength = original / rope.low_freq_factor;
  const double high_wavelength = original / rope.high_freq_factor;
  std::vector<float> divisors;
  for (int64_t pair = 0; pair < head_dim / 2; ++pair) {
    const float wavelength =
        static_cast<float>(2 * std::numbers::pi) / frequency(theta, pair, head_dim);
    if (static_cast<double>(wavelength) < high_wavelength) {
      divisors.push_back(1.0f);
    } else if (static_cast<double>(wavelength) > low_wavelength) {
      divisors.push_back(static_cast<float>(rope.factor));
    } else {
      const auto smooth =
          (static_cast<float>(original) / wavelength - static_cast<float>(rope.low_freq_factor)) /
          static_cast<float>(rope.high_freq_factor - rope.low_freq_factor);
      divisors.push_back(1.0f / ((1.0f - smooth) / static_cast<float>(rope.factor) + smooth));
    }
  }
  return divisors;
}

std::optional<Llama3Rope> rule_of_divisors(std::span<const float> divisors, double theta,
                                           const std::optional<Llama3Rope>& told) {
  if (divisors.empty()) return std::nullopt;
  const auto head_dim = static_cast<int64_t>(2 * divisors.size());
  const float factor = *std::max_element(divisors.begin(), divisors.end());
  if (!(factor >= 1.0f) || !std::isfinite(factor)) return std::nullopt;
  if (told && are_close(rope_divisors(*told, theta, head_dim), divisors)) return told;
  // The other members keep their defaults, the values of Llama 3.1 to 3.3.
  const Llama3Rope known{.factor = static_cast<double>(factor)};
  if (are_close(rope_divisors(known, theta, head_dim), divisors)) return known;
  const auto found = fitted(divisors, theta, static_cast<double>(factor));
  if (found && are_close(rope_divisors(*found, theta, head_dim), divisors)) return found;
  return std::nullopt;
}

}  // namespace convoy::gguf
