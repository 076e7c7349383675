// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/quiet_thread.h"

#include <csignal>
#include <utility>

namespace convoy {
namespace {

// New threads inherit the signal mask.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~AllSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

std::thread quiet_thread(std::function<void()> body) {
  const AllSignalsBlocked blocked;
  return std::thread(std::move(body));
}

}  // namespace convoy
