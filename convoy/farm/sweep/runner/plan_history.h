// SPDX-License-Identifier: Apache-2.0
//
// Reads from a store which part of a plan is done, before the plan is run.
#pragma once

#include <string>
#include <vector>

#include "convoy/core/jobs/job_store.h"
#include "convoy/farm/sweep/runner/planned_cell.h"

namespace convoy::sweep {

struct PlanHistory {
  std::string store;              // name of the store, without a password
  std::vector<PlannedCell> open;  // cells without a result, with the guesses that are left
  // The mean time of the finished cells with the plan's command, over all sweeps of the store. NaN
  // = there are none, or the plan does not run a command.
  double command_seconds = 0;
};

// Reads every task of the plan's workload and version. Throws the errors of the store.
PlanHistory read_history(jobs::JobStore& store, const SweepPlan& plan);

}  // namespace convoy::sweep
