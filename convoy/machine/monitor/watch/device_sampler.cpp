// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/monitor/watch/device_sampler.h"

#include <algorithm>

#include "convoy/core/base/seconds_since.h"
#include "convoy/core/base/wall_clock.h"

namespace convoy::monitor {

MachineReading DeviceSampler::take() {
  const Clock::time_point now = Clock::now();
  MachineReading reading;
  reading.wall_ns = wall_clock_ns();
  reading.elapsed_s = std::chrono::duration<double>(now - begin_).count();
  reading.devices = reader_.read();
  reading.host = host_.read();
  if (recorder_ != nullptr) recorder_->add(reading);
  summary_.add(reading);
  const double ms = 1000 * seconds_since(now);
  cost_.ticks += 1;
  cost_.longest_tick_ms = std::max(cost_.longest_tick_ms, ms);
  tick_ms_sum_ += ms;
  return reading;
}

SamplerCost DeviceSampler::cost() const {
  SamplerCost cost = cost_;
  cost.seconds = seconds_since(begin_);
  cost.mean_tick_ms = cost.ticks > 0 ? tick_ms_sum_ / static_cast<double>(cost.ticks) : 0;
  return cost;
}

}  // namespace convoy::monitor
