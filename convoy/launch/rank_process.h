// SPDX-License-Identifier: Apache-2.0
//
// One child process in a process group of its own, that the kernel kills when the launcher dies.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "convoy/launch/descriptor.h"

namespace convoy::launch {

struct RankProcess {
  pid_t pid = -1;
  Descriptor exited;  // pidfd: readable once the process has ended
  Descriptor output;  // its stdout, not blocking
  Descriptor errors;  // its stderr, not blocking
};

// stdin is /dev/null: a background process group that reads a terminal would be stopped. `signals` is the mask of the child.
// Call on the thread that outlives the child: the kernel ties the child's life to it. Throws ConfigError when `program` can not be
// executed, IoError when no process can be made.
RankProcess start_rank(const std::vector<std::string>& program,
                       const std::map<std::string, std::string>& environment,
                       const sigset_t& signals);

// Sends `signal` to everything in the rank's process group. Safe until the rank is reaped.
void signal_group(pid_t pid, int signal);

}  // namespace convoy::launch
