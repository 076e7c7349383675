// SPDX-License-Identifier: Apache-2.0
//
// How many CPUs this process may really use.
#pragma once

#include <filesystem>
#include <vector>

namespace convoy {

// The smaller of the affinity mask and the cgroup quota; at least 1.
int usable_cpus();

// The ids in the affinity mask, ascending; on a failure 0 .. hardware threads - 1.
std::vector<int> allowed_cpus();

// What the process's cgroup (v2 or v1) and those around it let it use, rounded up; 0 = no limit.
// Other folders than /sys and /proc are for tests.
int cpu_quota(const std::filesystem::path& sys = "/sys",
              const std::filesystem::path& proc = "/proc");

}  // namespace convoy
