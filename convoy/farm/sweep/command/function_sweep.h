// SPDX-License-Identifier: Apache-2.0
//
// Computes a C++ function over a grid of parameters and over seeds, on all CPUs, from a user's own
// program. Installed as <convoy/sweep.h>; needs no LibTorch. The program starts itself again as its
// worker processes, so a call that crashes or hangs fails only its cell. A sweep that was killed
// continues when the program is started again.
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
  std::string name;  // name of the sweep, such as "lattice"
  // Change it if the numbers may change: results of different versions are kept apart.
  std::string version = "1";
  // Values by name; every combination is a cell.
  std::map<std::string, std::vector<nlohmann::json>> grid;
  std::vector<int64_t> seeds = {0};
  // A pure function. It is called in worker processes, one call at a time, in any order. NaN and
  // exceptions fail the cell.
  std::function<double(const nlohmann::json& parameters, int64_t seed)> value;
};

struct SweepOptions {
  std::string store;  // the file that keeps tasks and results, or the URL of a PostgreSQL database
  int64_t workers = 0;  // number of processes; 0 = one per CPU that this process may use
  // CPU cores reserved for each worker; 0 = the system places workers.
  int64_t cores_per_worker = 0;
  double timeout_seconds = 3600;  // time limit of one call; 0 = none
  int64_t max_attempts = 3;       // calls of one cell before the cell counts as failed
  // Folder for sweep.log, which also holds the workers' standard error; empty = none.
  std::string log_folder = {};
};

struct SweepResults {
  struct Cell {
    nlohmann::json parameters;  // such as {"steps": 100, "dimensions": 1}
    int64_t seed = 0;
    double value = std::numeric_limits<double>::quiet_NaN();  // NaN if the cell has failed
    std::string failure;  // the reason; empty unless the cell has failed
  };
  std::vector<Cell> cells;  // in the order of grid and seeds
  std::string table;  // medians and quartiles over the seeds, as `convoy sweep show` prints them

  int64_t failed_cells() const;
};

// Call it first in main(). In a worker process it computes and returns nullopt, and main() should
// then return 0. In the program itself it runs the workers and returns the results; `convoy sweep
// show --store STORE` reads them too. Blocks until every cell has a value or has failed. Progress
// is printed to standard error. One call at a time per process: it owns the stop signals while it
// runs. Throws ConfigError (a name without values, a value or a seed twice), StopRequest on a stop
// signal (the same call continues the sweep later), StateError if workers cannot work, and the
// errors of the store (<convoy/error.h>).
std::optional<SweepResults> run_function_sweep(const FunctionSweep& sweep,
                                               const SweepOptions& options, int argc,
                                               const char* const* argv);

}  // namespace convoy
