// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/process_descriptor.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace convoy {

Descriptor process_descriptor(pid_t pid) {
  return Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

bool signal_process(const Descriptor& process, int signal) {
  return ::syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0) == 0;
}

std::string why_no_process_descriptors() {
  const Descriptor own = process_descriptor(::getpid());
  if (!own.open()) return fmt::format("pidfd_open is refused ({})", std::strerror(errno));
  if (!signal_process(own, 0))
    return fmt::format("pidfd_send_signal is refused ({})", std::strerror(errno));
  return "";
}

}  // namespace convoy
