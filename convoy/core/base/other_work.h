// SPDX-License-Identifier: Apache-2.0
//
// The cores that other processes keep busy, from the kernel's counters of CPU time: a short sample,
// since load averages still hold work that ended a minute ago and lack work that has just begun.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace convoy {

// Seconds, as far as they are known.
struct CpuTimes {
  double at = 0;    // seconds of a clock that goes on steadily
  double busy = 0;  // seconds of all processes, on the CPUs of this one
  double own = 0;   // seconds of this process
};

// Reads from `stat`, the text of /proc/stat, how many seconds `cpus` were busy. nullopt when the
// text lacks one of them.
std::optional<double> busy_seconds(const std::string& stat, const std::vector<int>& cpus);

// The average number of cores that other processes kept busy between the two moments.
double cores_of_others(const CpuTimes& before, const CpuTimes& after);

// The number of cores left to this process, at least 1: the cores in its affinity mask, less the
// cores that others keep busy, and at most its quota (0 = no quota). Others that use less than half
// a core count as none.
int free_cores(int in_mask, int quota, double busy_with_others);

// Watches from its construction on. For one process that works alone: further processes of the same
// job would count as other work.
class OtherWork {
 public:
  explicit OtherWork(std::filesystem::path proc = "/proc");

  // Blocks until there is enough to judge by, 50 ms after the construction. nullopt where the
  // counters cannot be read.
  std::optional<double> busy_cores() const;

 private:
  std::optional<CpuTimes> now() const;

  std::filesystem::path proc_;
  std::vector<int> cpus_;
  std::optional<CpuTimes> begin_;
};

}  // namespace convoy
