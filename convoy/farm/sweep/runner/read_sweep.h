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

// Gives the workload of that name and version, for its closed forms. Throws ConfigError for one
// that is not known.
using WorkloadMaker =
    std::function<std::unique_ptr<Workload>(const std::string& name, const std::string& version)>;

// Throws DataError for a damaged one, ConfigError for one of another Convoy's workload.
SweepResults read_sweep(jobs::JobStore& store, const SweepName& name, const WorkloadMaker& make);

// True when some worker holds a part of it now. A worker of another host counts until its lease
// ends.
bool has_live_worker(jobs::JobStore& store, const StoredSweep& sweep);

}  // namespace convoy::sweep
