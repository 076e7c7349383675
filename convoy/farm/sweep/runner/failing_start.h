// SPDX-License-Identifier: Apache-2.0
//
// Finds out that a sweep fails from its first cells on, all in one way: the others would take their
// time for nothing. The runner tells what its workers do. One thread.
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

  // `works`: some cell has a result already.
  explicit FailingStart(bool works) : works_(works) {}

  void add(size_t worker, const WorkerMessage& message, Clock::time_point now);
  void forget(size_t worker) { began_.erase(worker); }  // it is gone
  // True when the first cells, and the cells that ran beside them, all failed in one way. A number
  // that is not finite is a result here: the program works.
  bool found() const;
  int64_t num_failed() const { return num_failed_; }

 private:
  bool works_;
  bool differ_ = false;
  int64_t num_failed_ = 0;
  std::string way_;                            // the way in which the cells failed
  Clock::time_point decided_;                  // when the last of the few failed
  std::map<size_t, Clock::time_point> began_;  // cells that run, by worker
};

}  // namespace convoy::sweep
