// SPDX-License-Identifier: Apache-2.0
//
// `convoy sweep ... --dry-run`: the cells of a plan, their number and the time they would take.
#pragma once

#include "convoy/apps/front/command.h"
#include "convoy/farm/experiments/workload_kind.h"
#include "convoy/farm/sweep/runner/planned_cell.h"
#include "convoy/farm/sweep/runner/sweep_run.h"

namespace convoy::apps {

// Prints the cells on stdout, then their totals and the expected time as messages. Measures for a
// second or two to estimate the time. For commands (`kind` null), takes the time from the store in
// `options`, if that store exists. Writes no file. Returns the exit code.
int print_dry_run(const Context& context, const sweep::SweepPlan& plan,
                  const sweep::RunOptions& options, const experiments::WorkloadKind* kind);

}  // namespace convoy::apps
