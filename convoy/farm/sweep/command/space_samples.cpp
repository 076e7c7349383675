// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/command/space_samples.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "convoy/core/base/error.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/base/trimmed.h"
#include "convoy/farm/sweep/command/grid_values.h"
#include "convoy/farm/sweep/results/cell_result.h"

namespace convoy::sweep {
namespace {

// Direction numbers of Joe and Kuo (new-joe-kuo-6, 2008): degree and coefficients of the primitive
// polynomial, and the first odd integers. The first axis is van der Corput's sequence, which has no
// entry.
struct SobolAxis {
  uint32_t degree;
  uint32_t coefficients;
  std::array<uint32_t, 7> first;
};
constexpr std::array<SobolAxis, kMostSobolAxes - 1> kSobolAxes = {{
    {1, 0, {1}},
    {2, 1, {1, 3}},
    {3, 1, {1, 3, 1}},
    {3, 2, {1, 1, 1}},
    {4, 1, {1, 1, 3, 3}},
    {4, 4, {1, 3, 5, 13}},
    {5, 2, {1, 1, 5, 5, 17}},
    {5, 4, {1, 1, 5, 5, 5}},
    {5, 7, {1, 1, 7, 11, 19}},
    {5, 11, {1, 1, 5, 1, 1}},
    {5, 13, {1, 1, 1, 3, 11}},
    {5, 14, {1, 3, 5, 5, 31}},
    {6, 1, {1, 3, 3, 9, 7, 49}},
    {6, 13, {1, 1, 1, 15, 21, 21}},
    {6, 16, {1, 3, 1, 13, 27, 49}},
    {6, 19, {1, 1, 1, 15, 7, 5}},
    {6, 22, {1, 3, 1, 15, 13, 25}},
    {6, 25, {1, 1, 5, 5, 19, 61}},
    {7, 1, {1, 3, 7, 11, 23, 15, 103}},
    {7, 4, {1, 3, 7, 13, 13, 15, 69}},
}};

constexpr std::string_view kSpaces = " \t\r\n";
constexpr int kBits = 32;
using Directions = std::array<uint32_t, kBits>;

Directions directions_of(size_t axis) {
  Directions directions{};
  if (axis == 0) {
    for (int bit = 0; bit < kBits; ++bit) directions[static_cast<size_t>(bit)] = 1U << (31 - bit);
    return directions;
  }
  const SobolAxis& known = kSobolAxes[axis - 1];
  const size_t degree = known.degree;
  for (size_t bit = 0; bit < kBits; ++bit) {
    if (bit < degree) {
      directions[bit] = known.first[bit] << (31 - bit);
      continue;
    }
    directions[bit] = directions[bit - degree] ^ (directions[bit - degree] >> degree);
    for (size_t term = 1; term < degree; ++term)
      if ((known.coefficients >> (degree - 1 - term)) & 1U)
        directions[bit] ^= directions[bit - term];
  }
  return directions;
}

uint64_t random_word(int64_t seed, uint64_t axis, uint64_t point) {
  const std::array<uint64_t, 3> words = {static_cast<uint64_t>(seed), axis, point};
  return mix_seed(words);
}

// Computes a point by Gray code, like every Sobol generator: point n differs from point n - 1 in
// one direction number.
uint32_t sobol_word(const Directions& directions, uint64_t point) {
  uint32_t word = 0;
  const uint64_t gray = point ^ (point >> 1);
  for (size_t bit = 0; bit < kBits; ++bit)
    if ((gray >> bit) & 1U) word ^= directions[bit];
  return word;
}

}  // namespace

SpaceAxis SpaceAxis::parse(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 >= text.size())
    throw ConfigError(
        fmt::format("--space needs NAME=LOW..HIGH[,log][,int] or NAME=A,B,C, found `{}`", text),
        {.hint = "such as --space lr=1e-5..1e-2,log"});
  SpaceAxis axis{.name = std::string(trimmed(std::string_view(text).substr(0, equals), kSpaces))};
  if (axis.name.empty())
    throw ConfigError(fmt::format("--space: no name before `=`, found `{}`", text),
                      {.hint = "such as --space lr=1e-5..1e-2,log"});
  std::vector<std::string> parts = listed_values(text.substr(equals + 1));
  const size_t dots = parts.front().find("..");
  if (dots == std::string::npos) {
    axis.choices = std::move(parts);
    return axis;
  }
  const auto bound = [](std::string_view word) {
    return number_in(std::string(trimmed(word, kSpaces)));
  };
  const auto low = bound(std::string_view(parts.front()).substr(0, dots));
  const auto high = bound(std::string_view(parts.front()).substr(dots + 2));
  if (!low || !high || !(*low < *high))
    throw ConfigError(fmt::format("--space {}: wanted two numbers, the lower first, found `{}`",
                                  axis.name, parts.front()),
                      {.hint = "such as 1e-5..1e-2"});
  axis.low = *low;
  axis.high = *high;
  for (size_t at = 1; at < parts.size(); ++at) {
    axis.logarithmic = axis.logarithmic || parts[at] == "log";
    axis.whole = axis.whole || parts[at] == "int";
    if (parts[at] != "log" && parts[at] != "int")
      throw ConfigError(fmt::format("--space {}: wanted log or int after the range, found `{}`",
                                    axis.name, parts[at]),
                        {.hint = "such as --space width=16..256,log,int"});
  }
  if (axis.logarithmic && !(axis.low > 0))
    throw ConfigError(fmt::format("--space {}: a logarithmic range begins above 0, found {}",
                                  axis.name, axis.low),
                      {.hint = "raise the lower end, or leave log out"});
  if (axis.whole && (std::floor(axis.low) != axis.low || std::floor(axis.high) != axis.high))
    throw ConfigError(fmt::format("--space {}: wanted whole numbers, found {}..{}", axis.name,
                                  axis.low, axis.high),
                      {.hint = "round them, or leave int out"});
  return axis;
}

std::string SpaceAxis::value(double share) const {
  if (!choices.empty())
    return choices[std::min(choices.size() - 1,
                            static_cast<size_t>(share * static_cast<double>(choices.size())))];
  // Each integer gets an equal part of the range.
  const double from = whole ? low - (logarithmic ? 0.5 : 0) : low;
  const double to = whole ? high + (logarithmic ? 0.5 : 1) : high;
  const double number =
      logarithmic ? from * std::pow(to / from, share) : from + share * (to - from);
  if (!whole) return fmt::format("{:.6g}", number);
  return fmt::format("{:.0f}",
                     std::clamp(logarithmic ? std::round(number) : std::floor(number), low, high));
}

std::vector<std::vector<double>> unit_points(Sampling sampling, size_t axes, int64_t count,
                                             int64_t seed) {
  if (sampling != Sampling::Random && axes > kMostSobolAxes)
    throw ConfigError(fmt::format("wanted {} parameters at most for Sobol's sequence, found {}",
                                  kMostSobolAxes, axes),
                      {.hint = "--sampling random takes any number"});
  std::vector<std::vector<double>> points(static_cast<size_t>(count), std::vector<double>(axes));
  for (size_t axis = 0; axis < axes; ++axis) {
    const bool sobol = sampling == Sampling::Sobol;
    const Directions directions = sobol ? directions_of(axis) : Directions{};
    const auto shift = static_cast<uint32_t>(random_word(seed, axis, ~uint64_t{0}));
    for (size_t point = 0; point < points.size(); ++point) {
      const uint32_t word = sobol ? sobol_word(directions, point) ^ shift
                                  : static_cast<uint32_t>(random_word(seed, axis, point) >> 32);
      points[point][axis] = static_cast<double>(word) * 0x1p-32;
    }
  }
  return points;
}

}  // namespace convoy::sweep
