// SPDX-License-Identifier: Apache-2.0
//
// How a runner starts its workers: how many, on which cores, with which flags of `sweep-worker`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/sweep/runner/coordinator.h"
#include "convoy/sweep/runner/sweep_store.h"

namespace convoy::sweep {

int64_t worker_count(const RunOptions& options);

// Cores of each worker; empty = all have those of this process.
std::vector<std::vector<int>> worker_cores(const RunOptions& options, int64_t workers);

// argv of every worker of the sweep.
std::vector<std::string> worker_command(const SweepPlan& plan, const Workload& workload,
                                        const RunOptions& options, const StoredSweep& sweep,
                                        int64_t workers);

}  // namespace convoy::sweep
