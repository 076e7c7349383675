// SPDX-License-Identifier: Apache-2.0
//
// Ends programs that would stay behind: programs of a worker that was killed, and of this process.
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
  ProgramWatch();  // Throws IoError

  // Between two looks at what workers do: a guard that was killed has a successor afterwards.
  // Throws IoError.
  void keep_guard();

  // Ends the processes that dead workers left. `workers`: the workers that live. Blocks for 2 s at
  // most.
  void kill_orphans(const std::vector<pid_t>& workers);

  // Ends what runners of this host and user left that were killed together with their workers and
  // their guard. Known by the mark in its environment, which names a process that is gone; a runner
  // that is itself left by such a one spares its own kind. Returns how many processes. Blocks for 2
  // s at most.
  static int kill_leftovers();

  // The environment of everything that workers start.
  static std::map<std::string, std::string> environment();

 private:
  processes::ScratchFolder scratch_;
  processes::DescendantKeeper keeper_;
  processes::Guard guard_;
};

}  // namespace convoy::sweep
