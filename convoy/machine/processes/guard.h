// SPDX-License-Identifier: Apache-2.0
//
// A small process that outlives a killed launcher just long enough to kill what ranks had started
// and remove the scratch folder. The kernel's parent-death signal reaches ranks only, not their
// children; children that left the rank's process group are found by an entry of their environment.
// A killed guard is replaced at the next call of replace_if_gone().
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <set>
#include <string>

#include "convoy/core/base/descriptor.h"

namespace convoy::processes {

class Guard {
 public:
  // `mark`: "NAME=value" in the environment of every rank, or its beginning up to a ':'. Throws
  // IoError.
  Guard(const std::filesystem::path& scratch, const std::string& mark);
  ~Guard();  // Blocks until the process has ended, a few seconds in every case
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  pid_t pid() const { return pid_; }
  // Readable once the process has ended: time to call replace_if_gone().
  int descriptor() const { return exited_.get(); }
  // True when the process had been killed and a new one that watches the same groups was started.
  // Does not block. Throws IoError.
  bool replace_if_gone();
  void watch(pid_t group);
  // Call it before the group's leader is reaped, since its number may be used again.
  void forget(pid_t group);

 private:
  void start();
  void tell(pid_t message);
  bool ends_within(std::chrono::milliseconds limit) const;

  std::filesystem::path scratch_;
  std::string mark_;
  std::set<pid_t> groups_;
  pid_t pid_ = -1;
  Descriptor exited_;
  Descriptor line_;
};

}  // namespace convoy::processes
