// SPDX-License-Identifier: Apache-2.0
//
// Measures the most memory that a rank holds on its computing device between two moments.
#pragma once

#include <c10/core/Device.h>

#include <atomic>
#include <cstdint>
#include <thread>

namespace convoy::device {

struct PeakMemory {
  // Memory that the process keeps until its end; on the CPU without mapped files.
  int64_t owned_bytes = 0;
  // Memory as rank_memory() counts it; on the CPU with mapped files.
  int64_t resident_bytes = 0;
};

// Bytes that the rank owns now.
int64_t owned_memory_bytes(at::Device device);

// Measures from construction to stop(). On the CPU it reads the memory twice a millisecond; a block
// that is held for a shorter time has hardly been written to. It resets the process's peak, so only
// one may exist in a process at a time, except in ranks that are threads, which begin together.
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
  int64_t most_owned_bytes_ = 0;  // used by the thread until it has ended
  std::thread thread_;
};

}  // namespace convoy::device
