// SPDX-License-Identifier: Apache-2.0
//
// Reads sweeps of a store without changing them.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "convoy/core/jobs/job_store.h"
#include "convoy/farm/sweep/results/cell_result.h"
#include "convoy/farm/sweep/runner/sweep_store.h"

namespace convoy::sweep {

// Returns the workload with this name and version, for its closed forms. Throws ConfigError if it
// is unknown.
using WorkloadMaker =
    std::function<std::unique_ptr<Workload>(const std::string& name, const std::string& version)>;

// Throws DataError for a damaged sweep, ConfigError for a workload that only another version of
// Convoy knows.
SweepResults read_sweep(jobs::JobStore& store, const SweepName& name, const WorkloadMaker& make);

// True if a worker holds a part of the sweep now. A worker on another host counts until its lease
// ends.
bool has_live_worker(jobs::JobStore& store, const StoredSweep& sweep);

}  // namespace convoy::sweep
