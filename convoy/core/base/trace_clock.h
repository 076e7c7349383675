// SPDX-License-Identifier: Apache-2.0
//
// Time stamps of an asynchronous device: recorded when work is submitted, readable after the device
// has done it.
#pragma once

#include <cstdint>

namespace convoy {

class TraceClock {
 public:
  virtual ~TraceClock() = default;
  // Records the moment at which the work that this thread has submitted so far is done. Returns a
  // number above 0, for host_ns(). Does not wait. Callable from any thread.
  virtual int64_t note() = 0;
  // Returns that moment in nanoseconds of the host's monotonic clock. Blocks until it has passed.
  // Callable from any thread.
  virtual int64_t host_ns(int64_t note) = 0;
};

}  // namespace convoy
