// SPDX-License-Identifier: Apache-2.0
//
// The time of day, which a person can set and each host has its own of. Nothing is timed by it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace convoy {

// Nanoseconds since 1970. Passed in where a test has another one.
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
