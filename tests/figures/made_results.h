// SPDX-License-Identifier: Apache-2.0
//
// Made-up results of a built-in experiment, for figures.
#pragma once

#include <cmath>
#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "convoy/farm/sweep/results/cell_result.h"

namespace convoy::testing {

// The place of a cell: its line, its place along the axis, and its seed.
struct CellPlace {
  size_t line = 0, place = 0, seed = 0;
  bool guesses = false;
};

// Describes results of two methods over an axis and seeds.
struct Recipe {
  std::string workload = "mf";
  std::string axis = "depth";
  nlohmann::json values = nlohmann::json::array({2, 3, 4, 5});
  size_t seeds = 8;
  size_t groups = 1;
  bool descents = true;
  std::function<double(CellPlace)> value = [](CellPlace at) {
    return (at.guesses ? 0.2 : 0.1) + 0.01 * static_cast<double>(at.place + at.seed % 5);
  };
  std::function<sweep::CellState(CellPlace)> state = [](CellPlace) {
    return sweep::CellState::Value;
  };
  double theory = NAN;
};

sweep::SweepResults made(const Recipe& recipe);

}  // namespace convoy::testing
