// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/runner/slow_notice.h"

#include <utility>

namespace convoy::sweep {

SlowNotice::SlowNotice(Log log, std::string what, std::chrono::milliseconds first,
                       std::chrono::milliseconds every)
    : log_(std::move(log)),
      what_(std::move(what)),
      thread_([this, first, every] { watch(first, every); }) {}

SlowNotice::~SlowNotice() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  over_changed_.notify_one();
  thread_.join();
}

void SlowNotice::watch(std::chrono::milliseconds first, std::chrono::milliseconds every) {
  const auto begin = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  for (auto next = begin + first; !over_changed_.wait_until(lock, next, [this] { return over_; });
       next += every) {
    const auto gone = std::chrono::round<std::chrono::seconds>(next - begin);
    log_.info(next == begin + first ? what_ : fmt::format("{}: {} s so far", what_, gone.count()));
  }
}

}  // namespace convoy::sweep
