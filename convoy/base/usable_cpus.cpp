// SPDX-License-Identifier: Apache-2.0
#include "convoy/base/usable_cpus.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace convoy {
namespace {

int cpus_by_affinity() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  // Fails on hosts with more CPUs than the fixed mask holds.
  if (sched_getaffinity(0, sizeof(mask), &mask) != 0)
    return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  return std::max(1, CPU_COUNT(&mask));
}

// CPUs that "quota period" allows; "max" or -1 is no limit. 0 = no limit.
int cpus_of_quota(const std::string& quota, double period) {
  if (quota.empty() || quota == "max" || quota[0] == '-' || period <= 0) return 0;
  return static_cast<int>(std::ceil(std::stod(quota) / period));
}

int smaller_limit(int limit, int other) {
  if (limit == 0 || other == 0) return std::max(limit, other);
  return std::min(limit, other);
}

// The smallest quota from the process's own cgroup up to the root. 0 = no limit.
int cpus_by_quota() {
  std::ifstream groups("/proc/self/cgroup");
  int limit = 0;
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool unified = controllers.empty();
    if (!unified && controllers.find("cpu") == std::string::npos) continue;
    const std::filesystem::path root = unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu";
    std::filesystem::path folder = std::filesystem::path(line.substr(second + 1)).relative_path();
    while (true) {
      std::string quota;
      double period = 0;
      if (unified) {
        std::ifstream(root / folder / "cpu.max") >> quota >> period;
      } else {
        std::ifstream(root / folder / "cpu.cfs_quota_us") >> quota;
        std::ifstream(root / folder / "cpu.cfs_period_us") >> period;
      }
      limit = smaller_limit(limit, cpus_of_quota(quota, period));
      if (folder.empty()) break;
      folder = folder.parent_path();
    }
  }
  return limit;
}

}  // namespace

int usable_cpus() { return std::max(1, smaller_limit(cpus_by_affinity(), cpus_by_quota())); }

}  // namespace convoy
