// SPDX-License-Identifier: Apache-2.0
//
// One child process, such as a rank: in a session of its own, as under torchrun, and killed by the
// kernel when this process dies. It has no terminal: a child that prompts for a password gets an
// error, while a background group would be stopped for ever. No other layer forks, replaces its
// program or waits for a process; a test checks this.
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "convoy/core/base/descriptor.h"

namespace convoy::processes {

struct ChildProcess {
  pid_t pid = -1;
  Descriptor exited;  // pidfd: readable once the process has ended
  Descriptor output;  // its stdout, not blocking
  Descriptor errors;  // its stderr, not blocking
};

struct ChildStart {
  std::vector<std::string> program = {};                // argv; found in PATH unless it has a '/'
  std::map<std::string, std::string> environment = {};  // over this process's own
  sigset_t signals{};          // signals that stay blocked; none by default
  std::vector<int> cpus = {};  // CPUs that it may run on; empty = as this process
  rlimit descriptors{};        // limit of open files; 0 = as this process
  int inherited = -1;          // a descriptor that stays open over exec; -1 = none
  int input = -1;              // its stdin; -1 = /dev/null
  int errors = -1;             // its stderr; -1 = ChildProcess::errors
  // True: the child stays in this process's session, under its terminal, and gets the job's token,
  // as if a shell had started it.
  bool shares_session = false;
};

// On return the process leads its session and its group, and runs the program. It inherits this
// process's environment without the job's token, which lets its holder join the job: a program gets
// the token only when `environment` names it. Call on the thread that outlives the child: the
// kernel ties the child's life to it. Throws ConfigError when the program cannot be executed,
// IoError when no process can be made.
ChildProcess start_child(const ChildStart& start);

// A copy of this process in a session of its own that computes `body` and ends. Its `output` is the
// result, or the text of what `body` throws. Throws IoError.
ChildProcess fork_child(const std::function<std::string()>& body);

// Replaces this process by `program`, found as start_child() finds it. Returns only when that
// fails: the reason.
std::string become_program(std::vector<std::string> program);

struct ChildEnd {
  int exit_code = 0;  // 0 when a signal ended it; -1 = unknown, other code has waited for it
  int signal = 0;     // 0 = it ended by itself

  bool success() const { return exit_code == 0 && signal == 0; }
};

// Waits for the end, and reaps the child: its number may then be given to another process. Blocks.
ChildEnd wait_for_child(pid_t child);
// True once wait_for_child() would not block. A child that has ended can still be held by a
// debugger; the result is then false.
bool can_be_reaped(pid_t child);
// Waits for the end at most `limit`, and does not reap the child.
bool ends_within(const ChildProcess& child, std::chrono::milliseconds limit);

// Reads without blocking, about 1 MiB at most, so that a faster writer does not hold up this
// reader. Closes the descriptor at its end.
std::string read_available(Descriptor& from);

// Sends `signal` to everything in the child's process group. Safe until the child is reaped.
void signal_group(pid_t pid, int signal);

// fork() for this layer. Throws IoError.
pid_t fork_process();

}  // namespace convoy::processes
