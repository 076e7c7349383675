// SPDX-License-Identifier: Apache-2.0
//
// Gloo writes to its sockets without MSG_NOSIGNAL (gloo/transport/tcp/pair.cc, Pair::write), for
// its users run under Python, which ignores SIGPIPE. In a native program a connection that just
// closed would kill the rank before it can report why it failed.
#pragma once

#include <csignal>

namespace convoy::comm {

// While it lives SIGPIPE is blocked in this thread, and for ever in the threads started from it, so
// that their writes fail with EPIPE. A SIGPIPE that arrives meanwhile is dropped. The process's own
// handling of the signal does not change.
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
