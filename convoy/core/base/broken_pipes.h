// SPDX-License-Identifier: Apache-2.0
//
// In a native program a write to a pipe or connection that was just closed ends the process by
// SIGPIPE, before it can report why it failed. Sockets of our own have MSG_NOSIGNAL; pipes, and the
// sockets of libraries, have no such flag.
#pragma once

#include <csignal>

namespace convoy {

// While an object of this class exists, SIGPIPE is blocked in this thread, so that writes to closed
// pipes and connections fail with EPIPE. Threads that are started from this thread meanwhile keep
// SIGPIPE blocked for ever. A SIGPIPE that arrives meanwhile is dropped. The process's own handling
// of the signal does not change.
class BlockedBrokenPipes {
 public:
  BlockedBrokenPipes();
  ~BlockedBrokenPipes();
  BlockedBrokenPipes(const BlockedBrokenPipes&) = delete;
  BlockedBrokenPipes& operator=(const BlockedBrokenPipes&) = delete;

 private:
  sigset_t broken_pipe_;
  sigset_t before_;
};

}  // namespace convoy
