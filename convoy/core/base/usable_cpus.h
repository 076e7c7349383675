// SPDX-License-Identifier: Apache-2.0
//
// Number of CPUs that this process may use.
#pragma once

#include <filesystem>
#include <vector>

namespace convoy {

// The greatest number of compute threads that a setting may request. OpenMP ends a program for
// which it cannot create the requested number of threads.
inline constexpr int kMostThreads = 4096;

// The number of CPUs in the affinity mask or the cgroup quota, whichever is smaller; at least 1.
int usable_cpus();

// The CPU ids in the affinity mask, ascending. On failure 0 .. hardware threads - 1.
std::vector<int> allowed_cpus();

// Number of CPUs that the process's cgroup (v2 or v1) and its parents allow, rounded up. 0 = no
// limit. The folder arguments exist for tests.
int cpu_quota(const std::filesystem::path& sys = "/sys",
              const std::filesystem::path& proc = "/proc");

}  // namespace convoy
