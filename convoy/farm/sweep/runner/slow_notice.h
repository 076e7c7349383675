// SPDX-License-Identifier: Apache-2.0
//
// Says what is being done when it takes longer than a moment, on a thread of its own: whoever does
// it need not look at the clock.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "convoy/core/base/log.h"

namespace convoy::sweep {

// From construction to destruction. `what`: "planning the cells", said after `first` and then with
// the time gone after every `every`. No process may be forked meanwhile.
class SlowNotice {
 public:
  SlowNotice(Log log, std::string what, std::chrono::milliseconds first = std::chrono::seconds(1),
             std::chrono::milliseconds every = std::chrono::seconds(10));
  ~SlowNotice();
  SlowNotice(const SlowNotice&) = delete;
  SlowNotice& operator=(const SlowNotice&) = delete;

 private:
  void watch(std::chrono::milliseconds first, std::chrono::milliseconds every);

  Log log_;
  std::string what_;
  std::mutex mutex_;
  std::condition_variable over_changed_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace convoy::sweep
