// SPDX-License-Identifier: Apache-2.0
//
// The most memory that a rank holds between two moments, where it computes.
#pragma once

#include <c10/core/Device.h>

#include <atomic>
#include <cstdint>
#include <thread>

namespace convoy::device {

struct PeakMemory {
  // Memory that only the end of the process gives back: on the CPU without mapped files.
  int64_t owned_bytes = 0;
  // As rank_memory() counts it: on the CPU with them.
  int64_t resident_bytes = 0;
};

// Bytes that the rank owns now.
int64_t owned_memory_bytes(at::Device device);

// From construction to stop(). On the CPU it looks twice a millisecond: memory that is held for a
// shorter time is hardly touched. It resets the process's peak. So only one may exist in a process
// at a time, except in ranks that are threads, which begin together.
class PeakMeter {
 public:
  explicit PeakMeter(at::Device device);
  ~PeakMeter();
  PeakMeter(const PeakMeter&) = delete;
  PeakMeter& operator=(const PeakMeter&) = delete;

  PeakMemory stop();

 private:
  void look();

  at::Device device_;
  std::atomic<bool> stopped_ = false;
  int64_t most_owned_bytes_ = 0;  // the thread's own until it has ended
  std::thread thread_;
};

}  // namespace convoy::device
