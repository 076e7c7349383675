// SPDX-License-Identifier: Apache-2.0
//
// The cores that other processes keep busy, measured in a short sample of the kernel's counters of
// CPU time. Load averages would still include work that ended a minute ago, and hardly include work
// that has just begun.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace convoy {

// One reading of the clocks and counters.
struct CpuTimes {
  double at = 0;    // seconds of a monotonic clock
  double busy = 0;  // CPU seconds of all processes on this process's CPUs
  double own = 0;   // CPU seconds of this process
};

// Reads from `stat`, the text of /proc/stat, how many seconds `cpus` were busy. Returns nullopt
// when the text lacks one of the CPUs.
std::optional<double> busy_seconds(const std::string& stat, const std::vector<int>& cpus);

// The average number of cores that other processes kept busy between the two moments.
double cores_of_others(const CpuTimes& before, const CpuTimes& after);

// The number of cores left to this process, at least 1: the cores in its affinity mask, less the
// cores that others keep busy, and at most its quota (0 = no quota). Other processes that keep less
// than half a core busy do not count.
int free_cores(int in_mask, int quota, double busy_with_others);

// Measures from its construction on. Only for a process that works alone: other processes of the
// same job would count as other work.
class OtherWork {
 public:
  explicit OtherWork(std::filesystem::path proc = "/proc");

  // Blocks until the sample is long enough, 50 ms after the construction. Returns nullopt when the
  // counters cannot be read.
  std::optional<double> busy_cores() const;

 private:
  std::optional<CpuTimes> now() const;

  std::filesystem::path proc_;
  std::vector<int> cpus_;
  std::optional<CpuTimes> begin_;
};

}  // namespace convoy
