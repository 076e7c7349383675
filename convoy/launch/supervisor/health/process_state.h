// SPDX-License-Identifier: Apache-2.0
//
// A process's state and the processor time it has used, from the kernel.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace convoy::launch {

struct ProcessState {
  char letter = '?';       // R running, S sleeping, D device or disk, T stopped, t traced, Z ended
  pid_t group = 0;         // process group
  double cpu_seconds = 0;  // all threads, user and system
};

// None once the process is gone.
std::optional<ProcessState> read_process_state(pid_t pid);

// True when the process waits for a processor: if it was killed, it ends once it gets one.
bool waits_for_processor(const ProcessState& state);
// Why a process that was killed is still there, as the end of a sentence.
std::string why_not_ended(const ProcessState& state);

// True when the process has crashed and its core file is being written. Linux 4.15.
bool is_dumping_core(pid_t pid);

}  // namespace convoy::launch
