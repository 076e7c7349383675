// SPDX-License-Identifier: Apache-2.0
#include "convoy/base/usable_cpus.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

namespace convoy {
namespace {

namespace fs = std::filesystem;

// CPUs that "quota period" allows; "max" or -1 is no limit. 0 = no limit.
int cpus_of_quota(const std::string& quota, double period) {
  const double allowed = std::strtod(quota.c_str(), nullptr);
  if (allowed <= 0 || period <= 0) return 0;
  return static_cast<int>(std::ceil(allowed / period));
}

int smaller_limit(int limit, int other) {
  if (limit == 0 || other == 0) return std::max(limit, other);
  return std::min(limit, other);
}

// "cpu" among "cpu,cpuacct", but not "cpuset".
bool names_cpu(const std::string& controllers) {
  return ("," + controllers + ",").find(",cpu,") != std::string::npos;
}

int quota_of_folder(const fs::path& folder, bool unified) {
  std::string quota;
  double period = 0;
  if (unified) {
    std::ifstream(folder / "cpu.max") >> quota >> period;
  } else {
    std::ifstream(folder / "cpu.cfs_quota_us") >> quota;
    std::ifstream(folder / "cpu.cfs_period_us") >> period;
  }
  return cpus_of_quota(quota, period);
}

}  // namespace

int cpu_quota(const fs::path& sys, const fs::path& proc) {
  std::ifstream groups(proc / "self/cgroup");
  int limit = 0;
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool unified = controllers.empty();
    if (!unified && !names_cpu(controllers)) continue;
    fs::path root = sys / "fs/cgroup";
    if (!unified) root /= fs::exists(root / controllers) ? controllers : "cpu";
    // In a container the path may be the host's, of which only the root is mounted; every level that is there counts.
    fs::path folder = fs::path(line.substr(second + 1)).relative_path();
    while (true) {
      limit = smaller_limit(limit, quota_of_folder(root / folder, unified));
      if (folder.empty()) break;
      folder = folder.parent_path();
    }
  }
  return limit;
}

std::vector<int> allowed_cpus() {
  std::vector<int> cpus;
  constexpr int kMostCpus = 1 << 16;
  // The kernel refuses a mask smaller than its own.
  for (int count = CPU_SETSIZE; count <= kMostCpus; count *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> mask(
        CPU_ALLOC(static_cast<size_t>(count)), [](cpu_set_t* set) { CPU_FREE(set); });
    const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(count));
    CPU_ZERO_S(bytes, mask.get());
    if (::sched_getaffinity(0, bytes, mask.get()) != 0) {
      if (errno == EINVAL) continue;
      break;
    }
    for (int cpu = 0; cpu < count; ++cpu)
      if (CPU_ISSET_S(static_cast<size_t>(cpu), bytes, mask.get())) cpus.push_back(cpu);
    return cpus;
  }
  for (unsigned cpu = 0; cpu < std::max(1U, std::thread::hardware_concurrency()); ++cpu)
    cpus.push_back(static_cast<int>(cpu));
  return cpus;
}

int usable_cpus() {
  return std::max(1, smaller_limit(static_cast<int>(allowed_cpus().size()), cpu_quota()));
}

}  // namespace convoy
