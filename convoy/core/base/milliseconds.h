// SPDX-License-Identifier: Apache-2.0
//
// Converts seconds, which flags hold as fractions, to milliseconds.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace convoy {

// Fractions of a millisecond are dropped. Values beyond thirty years, positive or negative, are
// clamped to thirty years, so that a deadline of steady_clock (nanoseconds in 64 bits) does not
// overflow.
inline std::chrono::milliseconds milliseconds_of(double seconds) {
  constexpr double kLongest = 1e9;
  return std::chrono::milliseconds(
      static_cast<int64_t>(std::clamp(seconds, -kLongest, kLongest) * 1000));
}

inline double seconds_of(std::chrono::duration<double> time) { return time.count(); }

}  // namespace convoy
