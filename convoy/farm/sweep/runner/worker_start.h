// SPDX-License-Identifier: Apache-2.0
//
// The start of a runner's workers: their number, their cores, and their flags of `sweep-worker`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "convoy/farm/sweep/runner/sweep_run.h"
#include "convoy/farm/sweep/runner/sweep_store.h"

namespace convoy::sweep {

// The GPUs that workers use; each text names one GPU for CUDA_VISIBLE_DEVICES. Warns about
// requested GPUs that do not exist or cannot be used. Throws ConfigError if only GPUs may compute
// guesses and there are none.
std::vector<std::string> wanted_devices(const RunOptions& options);

int64_t worker_count(const RunOptions& options, const std::vector<std::string>& devices);

// The environment of each worker. It has CONVOY_SWEEP_WORKER and CONVOY_SWEEP_WORKERS. If workers
// start programs that should use GPUs of this host, each worker has one GPU in
// CUDA_VISIBLE_DEVICES. If GPUs compute cells, the first workers have one GPU each, and
// CONVOY_SWEEP_DEVICE holds RunOptions::compute_device.
std::vector<std::map<std::string, std::string>> worker_environments(
    const RunOptions& options, const std::vector<std::string>& devices, int64_t workers);

// The workers as text for the start of a run: "2 workers on CPUs", "3 workers: GPU 0, GPU 1, 1 on
// CPUs".
std::string workers_text(const std::vector<std::map<std::string, std::string>>& environments);

// Cores of each worker; empty = every worker uses the cores of this process.
std::vector<std::vector<int>> worker_cores(const RunOptions& options, int64_t workers);

// argv of each worker of the sweep.
std::vector<std::string> worker_command(const SweepPlan& plan, const Workload& workload,
                                        const RunOptions& options, const StoredSweep& sweep,
                                        int64_t workers);

}  // namespace convoy::sweep
