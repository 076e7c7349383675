// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/usable_cpus.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "convoy/core/base/cgroups.h"
#include "convoy/core/base/text_as.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;

// Number of CPUs that "quota period" allows, rounded up. 0 = no limit, also for "max" and -1.
int cpus_of_quota(const std::string& quota, const std::string& period) {
  const double allowed = text_as<double>(quota).value_or(0);
  const double of = text_as<double>(period).value_or(0);
  if (allowed <= 0 || of <= 0) return 0;
  return static_cast<int>(std::ceil(allowed / of));
}

int smaller_limit(int limit, int other) {
  if (limit == 0 || other == 0) return std::max(limit, other);
  return std::min(limit, other);
}

int quota_of_folder(const fs::path& folder, bool unified) {
  std::string quota, period;
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
  int limit = 0;
  visit_cgroups("cpu", {.sys = sys, .proc = proc}, [&](const fs::path& folder, bool unified) {
    limit = smaller_limit(limit, quota_of_folder(folder, unified));
  });
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
