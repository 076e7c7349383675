// SPDX-License-Identifier: Apache-2.0
//
// The workloads that Convoy computes itself, by name. The runner, its workers and the readers of a
// store use this one list.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "convoy/farm/experiments/workload_kind.h"

namespace convoy::experiments {

const std::vector<WorkloadKind>& workload_kinds();         // in the order of the help text
const WorkloadKind* find_workload(std::string_view name);  // null if there is none

// `name`: a workload of workload_kinds(), or `run` for any program. `timeout_seconds` limits a
// program; 0 = no limit. `mode`, `gpu`: see WorkloadKind::make. Throws ConfigError for an unknown
// name.
std::unique_ptr<sweep::Workload> make_workload(const std::string& name, const std::string& mode,
                                               double timeout_seconds = 0,
                                               std::shared_ptr<cuda::Device> gpu = nullptr);

// The workload that computed a stored sweep, or that represents a function of a user's program.
// Throws ConfigError.
std::unique_ptr<sweep::Workload> workload_of_version(const std::string& name,
                                                     const std::string& version);

}  // namespace convoy::experiments
