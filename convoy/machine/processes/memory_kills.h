// SPDX-License-Identifier: Apache-2.0
//
// Separates ranks that the kernel killed for lack of memory from ranks killed by a process. Only
// counters of the kernel show the difference: the counters of this process's memory cgroup or,
// without one, of the whole machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace convoy::processes {

class MemoryKills {
 public:
  // Counts from now on. The folders are for tests. Never throws: without counters there are no
  // kills.
  explicit MemoryKills(const std::filesystem::path& sys = "/sys",
                       const std::filesystem::path& proc = "/proc");

  // True when the kernel has killed a process for its memory since the last call.
  bool happened();

 private:
  int64_t count() const;

  std::vector<std::filesystem::path> cgroup_files_;
  std::filesystem::path machine_file_;
  int64_t seen_ = 0;
};

}  // namespace convoy::processes
