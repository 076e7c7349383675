// SPDX-License-Identifier: Apache-2.0
//
// Finds the rank that the others wait for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace convoy::telemetry {

class SlowRankWatch {
 public:
  // Adds one step: its seconds, and the seconds that each rank blocked in collectives. Returns a
  // sentence when, over the last kSteps steps, one rank computed at least kTimesSlower as long as
  // the median of the others; once per rank until it has caught up.
  std::string step(double seconds, const std::vector<double>& rank_wait_seconds);

  static constexpr int64_t kSteps = 20;
  static constexpr double kTimesSlower = 1.5;

 private:
  std::string judge();

  int64_t steps_ = -1;  // in the window; -1: a run's first, untypical step is skipped
  double seconds_ = 0;
  std::vector<double> waited_seconds_;
  int64_t named_ = -1;
};

}  // namespace convoy::telemetry
