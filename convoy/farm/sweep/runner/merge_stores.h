// SPDX-License-Identifier: Apache-2.0
//
// Copies the sweeps of one store and their results into another, which may have some of them.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "convoy/core/jobs/job_store.h"
#include "convoy/farm/sweep/runner/read_sweep.h"

namespace convoy::sweep {

struct MergeReport {
  int64_t sweeps = 0;
  int64_t cells = 0;                      // cells in the store `from`
  int64_t added = 0;                      // cells that the store `into` lacked
  int64_t results = 0;                    // results that were copied
  int64_t known = 0;                      // results in both stores; `into` keeps its own
  std::vector<std::string> skipped = {};  // groups with a damaged row
  std::set<std::string> names = {};       // names of the sweeps (SweepName::name)
};

// A sweep that was joined from several sweeps. The single sweeps still exist.
struct JoinedSweep {
  std::string name;
  int64_t sweeps = 0;
  int64_t cells = 0;
};

// Copies values and censored cells with their times. Failed and unfinished cells are open in
// `into`; ranges of guesses are not copied. May be repeated. Throws the errors of the stores.
MergeReport merge_store(jobs::JobStore& from, jobs::JobStore& into);

// Sweeps of `into` that differ only in seeds and in values of the axes are parts of one sweep.
// Makes the whole sweep in `into`, under the name that one command for all parts would give it; it
// counts as the sweep that ran last. Joins only sweeps in `names` and the other parts of those
// sweeps. A sweep that cannot be read stays as it is. May be repeated.
std::vector<JoinedSweep> join_sweeps(jobs::JobStore& into, const std::set<std::string>& names,
                                     const WorkloadMaker& make);

}  // namespace convoy::sweep
