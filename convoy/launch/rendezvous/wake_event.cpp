// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/rendezvous/wake_event.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "convoy/core/base/error.h"

namespace convoy::rendezvous {

WakeEvent::WakeEvent() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_.open())
    throw IoError(fmt::format("an eventfd could not be made: {}", std::strerror(errno)),
                  {.hint = "raise the limit of open files (ulimit -n, LimitNOFILE)"});
}

void WakeEvent::set() const {
  const uint64_t one = 1;
  // The write fails only when the counter is full, and the descriptor is readable then.
  [[maybe_unused]] const ssize_t written = ::write(event_.get(), &one, sizeof(one));
}

void WakeEvent::clear() const {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(event_.get(), &count, sizeof(count));
}

}  // namespace convoy::rendezvous
