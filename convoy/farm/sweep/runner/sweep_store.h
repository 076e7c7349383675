// SPDX-License-Identifier: Apache-2.0
//
// A sweep in the store: its groups of tasks, what other sweeps already computed of them, and its
// results.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "convoy/core/jobs/job_store.h"
#include "convoy/farm/sweep/results/cell_result.h"
#include "convoy/farm/sweep/runner/planned_cell.h"

namespace convoy::sweep {

// The tasks of a plan in the store: one group per method.
struct StoredSweep {
  std::vector<jobs::Group> groups;
  std::vector<std::string> methods;  // by group
  // Other versions of the same plan; their results are kept apart.
  std::vector<std::string> other_versions;
  int64_t added = 0;   // tasks that the store lacked
  int64_t reused = 0;  // finished ones taken over from other sweeps

  std::vector<int64_t> group_numbers() const;
};

// Adds what is missing. Results of equal tasks in other sweeps of the store are taken over.
// Idempotent.
StoredSweep store_plan(jobs::JobStore& store, const SweepPlan& plan);

// Failed tasks are tried again, unless a worker is active on the sweep. Returns their number.
int64_t retry_failed(jobs::JobStore& store, const StoredSweep& sweep);

// Finished cells for which `wanted` is true are computed again; see jobs::JobStore::redo. Returns
// their number.
int64_t redo_cells(jobs::JobStore& store, const StoredSweep& sweep,
                   const std::function<bool(const Cell&)>& wanted);

// A cell whose result, or what is finished of it, is of fewer guesses than it says. Earlier
// versions left such cells where making an experiment took longer than computing a range.
struct LackingCell {
  int64_t task = 0;
  PlannedCell planned;
  int64_t guesses = 0;  // guesses that were made
  int64_t units = 0;    // guesses that count as made
  bool is_open = false;
};
std::vector<LackingCell> cells_lacking_guesses(jobs::JobStore& store, const StoredSweep& sweep);
// Opens them again with all their guesses. Returns their number.
int64_t compute_again(jobs::JobStore& store, const std::vector<LackingCell>& cells);

// Completes every open task of the group whose units are all there. Returns their number.
int64_t finish_complete(jobs::JobStore& store, int64_t group);
// The same for tasks of these leases whose stop rule is satisfied. False when none of them has a
// rule.
bool finish_stopped(jobs::JobStore& store, const std::vector<jobs::Lease>& leases);
// The leases of the sweep's open tasks.
std::vector<jobs::Lease> all_leases(jobs::JobStore& store, const StoredSweep& sweep);

// In the order of the plan. The workload fills in the reference curve.
SweepResults read_results(jobs::JobStore& store, const StoredSweep& sweep,
                          const Workload& workload);

// Sweeps of a store, the one that was run last at the end: what `show`, `plot` and `export` choose
// from.
struct SweepName {
  std::string name;  // SweepPlan::name()
  std::string workload;
  std::string version;
  int64_t created_ms = 0;  // jobs::Group
  int64_t last_run_ms = 0;
  std::string problem = {};  // jobs::Group: then it may be no sweep's name, and another lacks cells
};
std::vector<SweepName> stored_sweeps(jobs::JobStore& store);
// `name`: "ssm-1a2b3c4d5e6f", "ssm" for all names that begin with "ssm-", or an unambiguous
// beginning of one name; each may end in "@VERSION". "" = all. In the same order, one at least.
// Throws DataError when the store holds none, ConfigError when none is named so.
std::vector<SweepName> find_sweeps(jobs::JobStore& store, const std::string& name);
StoredSweep stored_sweep(jobs::JobStore& store, const SweepName& name);
int64_t count_cells(jobs::JobStore& store, const StoredSweep& sweep);

}  // namespace convoy::sweep
