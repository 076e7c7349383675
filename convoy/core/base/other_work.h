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

// Seconds that `cpus` have worked by the text of /proc/stat; nullopt where it does not name them.
std::optional<double> busy_seconds(const std::string& stat, const std::vector<int>& cpus);

// Cores that others kept busy between the two, on average.
double cores_of_others(const CpuTimes& before, const CpuTimes& after);

// Cores left to this process, at least 1: of those in its mask, less what others take, and no more
// than its quota (0 = none) allows. Less than half a core in use counts as none.
int free_cores(int in_mask, int quota, double busy_with_others);

// Watches from its construction on. One process that works alone: the work of further processes of
// the same job counts as that of others.
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
