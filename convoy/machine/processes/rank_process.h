// SPDX-License-Identifier: Apache-2.0
//
// One child process in a session of its own, as under torchrun, that the kernel kills when the
// launcher dies. It has no terminal: a rank that prompts for a password gets an error, while a
// background group would be stopped for ever.
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "convoy/core/base/descriptor.h"

namespace convoy::processes {

struct RankProcess {
  pid_t pid = -1;
  Descriptor exited;  // pidfd: readable once the process has ended
  Descriptor output;  // its stdout, not blocking
  Descriptor errors;  // its stderr, not blocking
};

struct RankStart {
  std::vector<std::string> program;                // argv; looked up in PATH unless it has a '/'
  std::map<std::string, std::string> environment;  // over this process's own
  sigset_t signals;                                // the mask of the child
  std::vector<int> cpus;  // CPUs that it may run on; empty = as this process
  rlimit descriptors{};   // limit of open files; 0 = as this process
  int inherited = -1;     // a descriptor that stays open over exec; -1 = none
  int input = -1;         // its stdin; -1 = /dev/null
};

// On return the process leads its session and its group, and runs the program. It inherits this
// process's environment without the job's token, which lets its holder join the job: a program gets
// the token only when `environment` names it. Call on the thread that outlives the child: the
// kernel ties the child's life to it. Throws ConfigError when the program cannot be executed,
// IoError when no process can be made.
RankProcess start_rank(const RankStart& start);

// Sends `signal` to everything in the rank's process group. Safe until the rank is reaped.
void signal_group(pid_t pid, int signal);

}  // namespace convoy::processes
