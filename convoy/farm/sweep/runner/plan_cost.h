// SPDX-License-Identifier: Apache-2.0
//
// Estimates the time that cells will take on this machine. It measures for a second or two: the
// same guesses and the same descents, shortened, in as many processes as there will be workers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/farm/sweep/runner/planned_cell.h"

namespace convoy::sweep {

// The parameter that holds the number of steps of a workload's descents, and its value for cells
// that do not name it. Empty: the cost of a cell cannot be measured without computing the cell.
struct DescentSteps {
  std::string parameter;
  int64_t usual = 0;
};

// Workers of one kind. `measured` of them are timed at the same time, as a sample of all `workers`.
// If this process has opened the GPU, only one of them is timed.
struct CostEngine {
  const Workload* workload = nullptr;
  int64_t workers = 1;
  int64_t measured = 1;
  int64_t cells_together = 8;
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

// Blocks for about `seconds`. Starts processes, which have ended when it returns. Throws the errors
// of the workloads, StateError if a workload throws in a started process, and IoError.
PlanCost measure_cost(const std::vector<PlannedCell>& cells, const DescentSteps& steps,
                      const std::vector<CostEngine>& engines, double seconds);

}  // namespace convoy::sweep
