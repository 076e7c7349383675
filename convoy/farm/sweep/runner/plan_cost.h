// SPDX-License-Identifier: Apache-2.0
//
// Estimates the time that a plan will take on this machine. It computes a few guesses, and descents
// of fewer steps, of some of the cells, and derives the time of all cells from their speed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/farm/sweep/runner/planned_cell.h"

namespace convoy::sweep {

// The parameter that holds the number of steps of a workload's descents, and its value for cells
// that do not name it. Without a name a descent counts as one step, and measure_cost() must not get
// descents: it could not shorten them.
struct DescentSteps {
  std::string parameter;
  int64_t usual = 0;
};

// Workers of one kind: CPU processes, or GPUs.
struct CostEngine {
  const Workload* workload = nullptr;
  int64_t workers = 1;         // workers of the whole run
  int64_t measured = 1;        // CPU processes that are timed at once, as a sample of `workers`
  int64_t cells_together = 8;  // descents that a worker computes at once
  // The calling process has opened one of the GPUs. Its speed stands for every worker; `measured`
  // is not read.
  bool is_gpu = false;
};

struct PlanTotals {
  int64_t guesses = 0;
  int64_t guess_cells = 0;
  int64_t descents = 0;        // descents or commands
  int64_t steps = 0;           // steps of all descents
  bool may_end_early = false;  // some cell has a stop rule
};

PlanTotals totals_of(const std::vector<PlannedCell>& cells, const DescentSteps& steps);

struct PlanCost {
  double seconds = 0;  // time for the whole plan with all workers
  // Rate of all workers together over the whole plan; 0 = the plan has no guesses.
  double guesses_per_second = 0;
  double steps_per_second = 0;
};

// Blocks for about `seconds`, or longer when 64 steps of a descent take longer. CPU workers are
// timed in processes, which have ended when it returns; a GPU in the calling thread. Throws the
// errors of the workloads, StateError if a workload throws in a started process, and IoError.
PlanCost measure_cost(const std::vector<PlannedCell>& cells, const DescentSteps& steps,
                      const std::vector<CostEngine>& engines, double seconds);

}  // namespace convoy::sweep
