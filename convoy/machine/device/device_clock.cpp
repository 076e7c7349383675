// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/device/device_clock.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <chrono>
#include <cmath>

namespace convoy::device {

c10::Event& DeviceClock::record() {
  c10::Event& event = events_.emplace_back(device_.type(), c10::EventFlag::BACKEND_DEFAULT);
  event.record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  return event;
}

int64_t DeviceClock::note() {
  const std::lock_guard lock(mutex_);
  if (events_.empty()) {
    record().synchronize();
    begin_ns_ = std::chrono::duration_cast<std::chrono::nanoseconds>(
                    std::chrono::steady_clock::now().time_since_epoch())
                    .count();
  }
  record();
  return static_cast<int64_t>(events_.size()) - 1;
}

int64_t DeviceClock::host_ns(int64_t note) {
  const std::lock_guard lock(mutex_);
  c10::Event& event = events_.at(static_cast<size_t>(note));
  event.synchronize();
  return begin_ns_ + std::llround(events_.front().elapsedTime(event) * 1e6);
}

std::unique_ptr<TraceClock> make_device_clock(c10::Device device) {
  return device.is_cpu() ? nullptr : std::make_unique<DeviceClock>(device);
}

}  // namespace convoy::device
