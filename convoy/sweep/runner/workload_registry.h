// SPDX-License-Identifier: Apache-2.0
//
// The workloads of sweeps by name: what a runner, its workers and whoever reads the store agree on.
#pragma once

#include <memory>
#include <string>

#include "convoy/sweep/cuda/device.h"
#include "convoy/sweep/workload.h"

namespace convoy::sweep {

// `mode`: "exact" or "fast" where the workload knows both, else "". `timeout_seconds`: of programs that it runs; 0 = none.
// `gpu`: computes guesses where the workload can use one; null = the CPU does. Throws ConfigError.
std::unique_ptr<Workload> make_workload(const std::string& name, const std::string& mode,
                                        double timeout_seconds = 0,
                                        std::shared_ptr<cuda::Device> gpu = nullptr);

// The mode that a stored version was computed in.
std::string mode_of_version(const std::string& version);

}  // namespace convoy::sweep
