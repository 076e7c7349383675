// SPDX-License-Identifier: Apache-2.0
//
// Reads from a store which part of a plan is done, before it is run.
#pragma once

#include <string>
#include <vector>

#include "convoy/core/jobs/job_store.h"
#include "convoy/farm/sweep/runner/planned_cell.h"

namespace convoy::sweep {

struct PlanHistory {
  std::string store;              // its name, without a password
  std::vector<PlannedCell> open;  // cells without a result, with the guesses that are left
  // The mean of finished cells of the plan's command, over all sweeps of the store; NaN = none, or
  // the plan is of no command.
  double command_seconds = 0;
};

// Reads every task of the plan's workload and version. Throws what the store throws.
PlanHistory read_history(jobs::JobStore& store, const SweepPlan& plan);

}  // namespace convoy::sweep
