// SPDX-License-Identifier: Apache-2.0
//
// A small process that outlives a killed launcher just long enough to kill what ranks had started and remove the scratch
// folder. The kernel's parent-death signal reaches ranks only, not their children.
#pragma once

#include <sys/types.h>

#include <filesystem>

#include "convoy/launch/descriptor.h"

namespace convoy::launch {

class Guard {
 public:
  explicit Guard(const std::filesystem::path& scratch);  // throws IoError
  ~Guard();                                              // Blocks until the process has ended
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  void watch(pid_t group);
  void forget(
      pid_t group);  // before the group's leader is reaped, for its number may be used again

 private:
  void tell(pid_t message);

  pid_t pid_ = -1;
  Descriptor line_;
};

}  // namespace convoy::launch
