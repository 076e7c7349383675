// SPDX-License-Identifier: Apache-2.0
//
// Points of a space of parameters: random ones, or Sobol's sequence, which covers the space more
// evenly. The first n points are the same for every number of points, so that a sweep can grow.
// Pure functions, with the same results on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace convoy::sweep {

// One axis of a space, written as "lr=1e-5..1e-1,log", "layers=1..8,int", "batch=16..512,log,int"
// or "activation=relu,tanh,gelu".
struct SpaceAxis {
  std::string name;
  double low = 0, high = 1;  // unused if there are choices
  bool logarithmic = false;
  bool whole = false;
  std::vector<std::string> choices = {};

  static SpaceAxis parse(const std::string& text);  // throws ConfigError
  // The value at `share` of the axis, 0 <= share < 1. Numbers have six digits.
  std::string value(double share) const;
};

enum class Sampling { Random, Sobol };

constexpr size_t kMostSobolAxes = 21;

// Returns `count` points in [0, 1)^axes. `seed` shifts Sobol's points, digit by digit. Throws
// ConfigError for more axes than kMostSobolAxes.
std::vector<std::vector<double>> unit_points(Sampling sampling, size_t axes, int64_t count,
                                             int64_t seed);

}  // namespace convoy::sweep
