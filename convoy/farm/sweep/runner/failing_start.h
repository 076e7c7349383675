// SPDX-License-Identifier: Apache-2.0
//
// Detects that the first cells of a sweep all fail in the same way, so that computing the other
// cells would waste time. The runner passes on the messages of its workers. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "convoy/farm/sweep/runner/worker_message.h"

namespace convoy::sweep {

class FailingStart {
 public:
  using Clock = std::chrono::steady_clock;

  // `works`: true if some cell has a result already.
  explicit FailingStart(bool works) : works_(works) {}

  void add(size_t worker, const WorkerMessage& message, Clock::time_point now);
  void forget(size_t worker) { began_.erase(worker); }  // the worker is gone
  // True if the first cells, and the cells that ran at the same time, all failed in the same way. A
  // number that is not finite counts as a result here: the program works.
  bool found() const;
  int64_t num_failed() const { return num_failed_; }

 private:
  bool works_;
  bool differ_ = false;
  int64_t num_failed_ = 0;
  std::string way_;                            // the way in which the cells failed
  Clock::time_point decided_;                  // time at which the last of the first cells failed
  std::map<size_t, Clock::time_point> began_;  // time at which a cell began, by worker
};

}  // namespace convoy::sweep
