// SPDX-License-Identifier: Apache-2.0
//
// Prints the current step when it takes longer than a moment. A thread of its own prints, so the
// step itself needs no clock.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "convoy/core/base/log.h"

namespace convoy::sweep {

// Prints while the object exists. `what`, such as "planning the cells", is printed after `first`,
// and then with the elapsed time after every `every`. Do not fork while the object exists.
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
