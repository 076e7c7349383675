// SPDX-License-Identifier: Apache-2.0
//
// A C++ function over a grid, from a program of a user's own: the program starts itself again as
// its workers, so a call that crashes or hangs costs its cell only. examples/function_sweep is a
// whole one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "convoy/farm/sweep/results/cell_result.h"
#include "convoy/farm/sweep/runner/coordinator.h"

namespace convoy::sweep {

struct FunctionSweep {
  std::string name;  // of the sweep, "lattice"
  std::string version =
      "1";  // change it when the numbers may change: results of others are kept apart
  std::map<std::string, std::vector<nlohmann::json>> grid;  // every choice of one value per name
  std::vector<int64_t> seeds = {0};
  // A pure function: called in worker processes, one call at a time, in any order. NaN and what it
  // throws fail the cell.
  std::function<double(const nlohmann::json& parameters, int64_t seed)> value;
};

// To be called first in main(): in a worker it computes and returns none, and main() should return
// 0. In the program itself it keeps workers at the sweep and returns the results in the order of
// grid and seeds. `options`: store, workers, timeout, attempts, log; the worker's command is set
// here. `convoy sweep show --store STORE` reads them too. Blocks. Throws ConfigError (a name
// without values, a value or a seed twice), StopRequest on a stop signal (the same call goes on),
// and what run_sweep throws.
std::optional<SweepResults> run_function_sweep(const FunctionSweep& sweep, RunOptions options,
                                               int argc, const char* const* argv);

}  // namespace convoy::sweep
