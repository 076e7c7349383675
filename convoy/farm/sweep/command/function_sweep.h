// SPDX-License-Identifier: Apache-2.0
//
// A C++ function over a grid of parameters and over seeds, on all CPUs, from a program of one's
// own. Installed as <convoy/sweep.h>; needs no LibTorch. The program starts itself again as its
// workers, so a call that crashes or hangs costs its cell only; killed and started again, the sweep
// continues.
//
//   int main(int argc, char** argv) {
//     const convoy::FunctionSweep walks{.name = "walks",
//                                       .grid = {{"steps", {100, 200}}, {"dimensions", {1, 2}}},
//                                       .seeds = {0, 1, 2, 3},
//                                       .value = mean_distance};
//     const auto results = convoy::run_function_sweep(walks, {.store = "walks.db"}, argc, argv);
//     if (!results) return 0;  // this process was a worker
//     std::fputs(results->table.c_str(), stdout);
//   }
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace convoy {

struct FunctionSweep {
  std::string name;  // the sweep's name, "lattice"
  // Change it when the numbers may change: results of other versions are kept apart.
  std::string version = "1";
  std::map<std::string, std::vector<nlohmann::json>> grid;  // every choice of one value per name
  std::vector<int64_t> seeds = {0};
  // A pure function: called in worker processes, one call at a time, in any order. NaN and
  // exceptions fail the cell.
  std::function<double(const nlohmann::json& parameters, int64_t seed)> value;
};

struct SweepOptions {
  std::string store;  // the file that keeps tasks and results, or the URL of a PostgreSQL database
  int64_t workers = 0;            // processes; 0 = one for each CPU that this process may use
  int64_t cores_per_worker = 0;   // each worker on cores of its own; 0 = where the system puts it
  double timeout_seconds = 3600;  // for one call; 0 = none
  int64_t max_attempts = 3;       // calls of one cell, before it has failed
  // Folder for sweep.log, with the workers' standard error; empty = none.
  std::string log_folder = {};
};

struct SweepResults {
  struct Cell {
    nlohmann::json parameters;  // {"steps": 100, "dimensions": 1}
    int64_t seed = 0;
    double value = std::numeric_limits<double>::quiet_NaN();  // NaN: the cell has failed
    std::string failure;  // the reason; empty unless the cell has failed
  };
  std::vector<Cell> cells;  // in the order of grid and seeds
  std::string table;  // medians and quartiles over the seeds, as `convoy sweep show` prints them

  int64_t failed_cells() const;
};

// To be called first in main(): in a worker it computes and returns none, and main() should return
// 0. In the program itself it keeps workers at the sweep and returns the results; `convoy sweep
// show --store STORE` reads them too. Blocks until every cell has a value or has failed. Progress
// goes to standard error. One call at a time per process: it owns the stop signals while it runs.
// Throws ConfigError (a name without values, a value or a seed twice), StopRequest on a stop signal
// (the same call continues), StateError when workers cannot work, and the errors of the store
// (<convoy/error.h>).
std::optional<SweepResults> run_function_sweep(const FunctionSweep& sweep,
                                               const SweepOptions& options, int argc,
                                               const char* const* argv);

}  // namespace convoy
