// SPDX-License-Identifier: Apache-2.0
//
// Flags are seconds, with fractions; clocks here count milliseconds.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace convoy {

// What is left of a millisecond is dropped. More than thirty years, either way, are thirty years: a
// deadline of steady_clock, which counts nanoseconds in 64 bits, can be made of them.
inline std::chrono::milliseconds milliseconds_of(double seconds) {
  constexpr double kLongest = 1e9;
  return std::chrono::milliseconds(
      static_cast<int64_t>(std::clamp(seconds, -kLongest, kLongest) * 1000));
}

inline double seconds_of(std::chrono::milliseconds time) {
  return static_cast<double>(time.count()) / 1000;
}

}  // namespace convoy
