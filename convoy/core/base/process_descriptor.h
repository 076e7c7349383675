// SPDX-License-Identifier: Apache-2.0
//
// A descriptor of a process (pidfd): readable once the process has ended. It never refers to
// another process, even if the process number is used again. It needs Linux 5.3, the oldest kernel
// on which Convoy starts processes.
#pragma once

#include <sys/types.h>

#include <string>

#include "convoy/core/base/descriptor.h"

namespace convoy {

// Returns a descriptor that is not open, with errno set, when there is no such process or the
// kernel refuses.
Descriptor process_descriptor(pid_t pid);
// Returns false, with errno set as by kill(2), when the signal cannot be sent.
bool signal_process(const Descriptor& process, int signal);

// Why processes cannot be watched on this host, as half a sentence; empty when they can.
std::string why_no_process_descriptors();
// The hint for such a host.
inline constexpr const char* kProcessDescriptorsHint =
    "use Linux 5.3 or newer; in a container, a runtime whose seccomp profile allows pidfd_open and "
    "pidfd_send_signal (Docker 20.10 with libseccomp 2.5)";

}  // namespace convoy
