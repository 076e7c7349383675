// SPDX-License-Identifier: Apache-2.0
//
// Flags are seconds, with fractions; clocks here count milliseconds.
#pragma once

#include <chrono>
#include <cstdint>

namespace convoy {

// What is left of a millisecond is dropped.
inline std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

}  // namespace convoy
