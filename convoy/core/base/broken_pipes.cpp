// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/broken_pipes.h"

#include <pthread.h>

#include <ctime>

namespace convoy {

BlockedBrokenPipes::BlockedBrokenPipes() {
  sigemptyset(&broken_pipe_);
  sigaddset(&broken_pipe_, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &broken_pipe_, &before_);
}

BlockedBrokenPipes::~BlockedBrokenPipes() {
  if (sigismember(&before_, SIGPIPE) == 1) return;
  const timespec at_once{};
  while (sigtimedwait(&broken_pipe_, nullptr, &at_once) == SIGPIPE) {
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace convoy
