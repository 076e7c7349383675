// SPDX-License-Identifier: Apache-2.0
//
// Progress lines for a long encoding.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "convoy/core/base/log.h"

namespace convoy::data {

// Every ten seconds, logs the number of encoded rows of a file and the rate.
class EncodeProgress {
 public:
  EncodeProgress(const Log& log, std::string file);

  void add_row();

 private:
  using Clock = std::chrono::steady_clock;

  void say(Clock::time_point now);

  const Log& log_;
  std::string file_;
  Clock::time_point start_;
  Clock::time_point next_;
  int64_t rows_ = 0;
};

}  // namespace convoy::data
