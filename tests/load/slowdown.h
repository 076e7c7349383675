// SPDX-License-Identifier: Apache-2.0
//
// Time limits of tests that are tight on an idle machine and longer on a busy one.
#pragma once

#include <time.h>

#include <algorithm>
#include <chrono>

namespace convoy::testing {

// Returns the factor by which this machine is slower than an idle core, at least 1: the worst that
// this process has measured so far. A call takes 20 ms of processor time.
inline double slowdown() {
  static double worst = 1;
  const auto processor_seconds = [] {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
  };
  constexpr double kSample = 0.02;
  const double until = processor_seconds() + kSample;
  const auto begin = std::chrono::steady_clock::now();
  while (processor_seconds() < until) {
  }
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  worst = std::max(worst, passed.count() / kSample);
  return worst;
}

// Returns a duration that can be compared with a difference of time points.
inline std::chrono::duration<double> within(double seconds_when_idle) {
  return std::chrono::duration<double>(seconds_when_idle * slowdown());
}

}  // namespace convoy::testing
