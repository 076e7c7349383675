// SPDX-License-Identifier: Apache-2.0
//
// Moments of a machine that does its work later than it is told to: noted now, known afterwards.
#pragma once

#include <cstdint>

namespace convoy {

class TraceClock {
 public:
  virtual ~TraceClock() = default;
  // Notes the moment at which what this thread has submitted so far is done. Above 0; 0 is never
  // one. Does not wait for it. Any thread.
  virtual int64_t note() = 0;
  // The moment, in nanoseconds of the host's monotonic clock. Blocks until it has come. Any thread.
  virtual int64_t host_ns(int64_t note) = 0;
};

}  // namespace convoy
