// SPDX-License-Identifier: Apache-2.0
//
// Divides the CPUs of one host among its ranks, by NUMA node, socket, core or last-level cache.
#pragma once

#include <vector>

#include "convoy/launch/place/placement.h"
#include "convoy/machine/monitor/host/machine.h"

namespace convoy::launch {

constexpr int kUnknownNode = -1;

// CPUs by local rank. `nodes` holds the NUMA node of each rank's device, kUnknownNode where there
// is no device or its slot gives no node. Throws ConfigError as plan_placement does.
std::vector<std::vector<int>> share_cpus(const Machine& machine, NumaBinding binding,
                                         const std::vector<int>& nodes);

// The NUMA node of each rank when there are no devices. Neighbouring ranks get the same node.
std::vector<int> spread_over_nodes(const Machine& machine, int num_ranks);

// The one node that all of `cpus` are on; kUnknownNode for several.
int common_node(const Machine& machine, const std::vector<int>& cpus);

}  // namespace convoy::launch
