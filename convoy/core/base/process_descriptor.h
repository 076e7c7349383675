// SPDX-License-Identifier: Apache-2.0
//
// A descriptor of a process (pidfd): readable once the process has ended, and never another
// process's, however its number is used again. It needs Linux 5.3, the oldest kernel on which
// Convoy starts processes.
#pragma once

#include <sys/types.h>

#include <string>

#include "convoy/core/base/descriptor.h"

namespace convoy {

// Not open, with errno set, where there is no such process or the kernel refuses.
Descriptor process_descriptor(pid_t pid);
// False as kill(2): errno is set.
bool signal_process(const Descriptor& process, int signal);

// Why processes cannot be watched on this host, as half a sentence; empty when they can.
std::string why_no_process_descriptors();
// The way out.
inline constexpr const char* kProcessDescriptorsHint =
    "use Linux 5.3 or newer; in a container, a runtime whose seccomp profile allows pidfd_open and "
    "pidfd_send_signal (Docker 20.10 with libseccomp 2.5)";

}  // namespace convoy
