// SPDX-License-Identifier: Apache-2.0
//
// Gloo writes to its sockets without MSG_NOSIGNAL (gloo/transport/tcp/pair.cc, Pair::write),
// because its users run under Python, which ignores SIGPIPE. In a native program a write to a
// connection that was just closed would kill the rank before it can report why it failed.
#pragma once

#include <csignal>

namespace convoy::comm {

// While an object of this class exists, SIGPIPE is blocked in this thread, so that writes to closed
// connections fail with EPIPE. Threads that are started from this thread meanwhile keep SIGPIPE
// blocked for ever. A SIGPIPE that arrives meanwhile is dropped. The process's own handling of the
// signal does not change.
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

}  // namespace convoy::comm
