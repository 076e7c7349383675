// SPDX-License-Identifier: Apache-2.0
//
// A sweep in the store: its groups of tasks, the results that it takes over from other sweeps, and
// its own results.
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
  int64_t reused = 0;  // finished tasks whose results other sweeps had

  std::vector<int64_t> group_numbers() const;
};

// Adds the tasks that the store lacks. Takes over the results of equal tasks in other sweeps of the
// store. Idempotent.
StoredSweep store_plan(jobs::JobStore& store, const SweepPlan& plan);

// Opens failed tasks again, unless a worker is active on the sweep. Returns the number of tasks.
int64_t retry_failed(jobs::JobStore& store, const StoredSweep& sweep);

// Opens the finished cells again for which `wanted` is true; see jobs::JobStore::redo. Returns the
// number of cells.
int64_t redo_cells(jobs::JobStore& store, const StoredSweep& sweep,
                   const std::function<bool(const Cell&)>& wanted);

// A cell whose result, or whose finished part, covers fewer guesses than recorded. Earlier versions
// left such cells if making an experiment took longer than computing a range.
struct LackingCell {
  int64_t task = 0;
  PlannedCell planned;
  int64_t guesses = 0;  // guesses that were really made
  int64_t units = 0;    // guesses that are recorded as made
  bool is_open = false;
};
std::vector<LackingCell> cells_lacking_guesses(jobs::JobStore& store, const StoredSweep& sweep);
// Opens these cells again with all of their guesses. Returns the number of cells.
int64_t compute_again(jobs::JobStore& store, const std::vector<LackingCell>& cells);

// Completes every open task of the group whose units are all done. Returns the number of tasks.
int64_t finish_complete(jobs::JobStore& store, int64_t group);
// Completes the tasks of these leases whose stop rule is satisfied. Returns false if none of the
// tasks has a rule.
bool finish_stopped(jobs::JobStore& store, const std::vector<jobs::Lease>& leases);
// The leases of the sweep's open tasks.
std::vector<jobs::Lease> all_leases(jobs::JobStore& store, const StoredSweep& sweep);

// The results in the order of the plan. The workload adds the reference curves.
SweepResults read_results(jobs::JobStore& store, const StoredSweep& sweep,
                          const Workload& workload);

// A sweep of a store, from which `show`, `plot` and `export` choose. In a list, the sweep that ran
// last comes last.
struct SweepName {
  std::string name;  // see SweepPlan::name()
  std::string workload;
  std::string version;
  int64_t created_ms = 0;  // see jobs::Group
  int64_t last_run_ms = 0;
  // See jobs::Group; if set, `name` may be wrong and another sweep may lack cells.
  std::string problem = {};
};
std::vector<SweepName> stored_sweeps(jobs::JobStore& store);
// `name`: "ssm-1a2b3c4d5e6f", "ssm" for all names that begin with "ssm-", or an unambiguous
// beginning of one name; each may end in "@VERSION". "" = all. Returns at least one sweep; the
// sweep that ran last comes last. Throws DataError if the store holds no sweep, ConfigError if no
// sweep matches.
std::vector<SweepName> find_sweeps(jobs::JobStore& store, const std::string& name);
StoredSweep stored_sweep(jobs::JobStore& store, const SweepName& name);
int64_t count_cells(jobs::JobStore& store, const StoredSweep& sweep);

}  // namespace convoy::sweep
