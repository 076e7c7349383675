// SPDX-License-Identifier: Apache-2.0
//
// Ends programs that would keep running after a worker, or this process, was killed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "convoy/machine/processes/descendants.h"
#include "convoy/machine/processes/guard.h"
#include "convoy/machine/processes/scratch_folder.h"

namespace convoy::sweep {

class ProgramWatch {
 public:
  ProgramWatch();  // throws IoError

  // Call it between two checks of the workers. If the guard was killed, starts another guard.
  // Throws IoError.
  void keep_guard();

  // Ends the processes that dead workers left behind. `workers`: the living workers. Blocks for at
  // most 2 s.
  void kill_orphans(const std::vector<pid_t>& workers);

  // Ends processes that were left behind by runners of this host and user, because a runner was
  // killed together with its workers and its guard. Such a process has a mark in its environment
  // that names a process that is gone. If this runner has such a mark itself, it spares the
  // processes with the same mark. Returns the number of ended processes. Blocks for at most 2 s.
  static int kill_leftovers();

  // The environment of every process that workers start.
  static std::map<std::string, std::string> environment();

 private:
  processes::ScratchFolder scratch_;
  processes::DescendantKeeper keeper_;
  processes::Guard guard_;
};

}  // namespace convoy::sweep
