// SPDX-License-Identifier: Apache-2.0
//
// The time of day. A person can set it, and hosts disagree about it, so it never measures
// durations.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace convoy {

// Nanoseconds since 1970. Passed as a parameter, so that tests can use another clock.
using WallClock = std::function<int64_t()>;

inline int64_t wall_clock_ns() {
  using std::chrono::nanoseconds;
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<nanoseconds>(since_1970).count();
}

inline double wall_clock_seconds() {  // since 1970
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace convoy
