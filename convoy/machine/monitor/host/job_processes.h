// SPDX-License-Identifier: Apache-2.0
//
// The host's resources that the descendants of one process use, from /proc: for a launcher, its
// ranks and their children.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>

namespace convoy::monitor {

struct JobUsage {
  double cpu_seconds = 0;  // running and ended processes; never decreases
  double memory_mib = 0;   // living processes, without the files that they map
};

// Finds children of main threads. A child that another thread started counts only after its end.
// One thread.
class JobProcesses {
 public:
  explicit JobProcesses(std::filesystem::path proc = "/proc", pid_t root = ::getpid())
      : proc_(std::move(proc)), root_(root) {}

  std::optional<JobUsage> read();
  const std::string& reason() const { return reason_; }  // why reading fails; empty = it works

 private:
  std::filesystem::path proc_;
  pid_t root_;
  double most_cpu_seconds_ = 0;
  std::string reason_;
};

}  // namespace convoy::monitor
