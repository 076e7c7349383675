// SPDX-License-Identifier: Apache-2.0
//
// The time at which a GPU reaches its work: timed events on the current stream of the calling
// thread.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>

#include <deque>
#include <memory>
#include <mutex>

#include "convoy/core/base/trace_clock.h"

namespace convoy::device {

// Thread-safe. Each note takes an event of the device until the end of the clock.
class DeviceClock : public TraceClock {
 public:
  // The device is not touched before the first note. The first note waits once for the device's
  // current stream.
  explicit DeviceClock(c10::Device device) : device_(device) {}

  int64_t note() override;
  // Exact to a microsecond in the first seconds after the first note: drivers return intervals as
  // float milliseconds.
  int64_t host_ns(int64_t note) override;

 private:
  c10::Event& record();

  const c10::Device device_;
  std::mutex mutex_;
  int64_t begin_ns_ = 0;  // the host's clock at the first event
  std::deque<c10::Event> events_;
};

// Null for the CPU, whose work is done when its call returns.
std::unique_ptr<TraceClock> make_device_clock(c10::Device device);

}  // namespace convoy::device
