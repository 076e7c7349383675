// SPDX-License-Identifier: Apache-2.0
#include "convoy/rendezvous/quiet_thread.h"

#include <csignal>
#include <utility>

namespace convoy::rendezvous {

std::thread quiet_thread(std::function<void()> body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // inherited by the new thread
  std::thread thread(std::move(body));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace convoy::rendezvous
