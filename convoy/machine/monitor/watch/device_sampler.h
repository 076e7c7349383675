// SPDX-License-Identifier: Apache-2.0
//
// Reads GPUs and host again and again: records each reading, adds it to the summary, and measures
// the cost of reading. One thread at a time.
#pragma once

#include <chrono>

#include "convoy/machine/monitor/gpus/device_reader.h"
#include "convoy/machine/monitor/host/host.h"
#include "convoy/machine/monitor/watch/recorder.h"
#include "convoy/machine/monitor/watch/watch_summary.h"

namespace convoy::monitor {

class DeviceSampler {
 public:
  using Clock = std::chrono::steady_clock;

  // `reader` and `recorder` must outlive this object. A null `recorder` records nothing. Elapsed
  // time is counted from the construction.
  DeviceSampler(DeviceReader& reader, const DeviceSources& sources, Recorder* recorder,
                WatchedJob job = WatchedJob::None)
      : reader_(reader), host_(sources, job), recorder_(recorder) {}

  MachineReading take();

  Clock::time_point begin() const { return begin_; }
  const Summary& summary() const { return summary_; }
  std::vector<HostGap> host_gaps() const { return host_.gaps(); }
  // The cost since the beginning. The caller fills in the processor time.
  SamplerCost cost() const;

 private:
  DeviceReader& reader_;
  HostReader host_;
  Recorder* recorder_;
  Clock::time_point begin_ = Clock::now();
  Summary summary_;
  SamplerCost cost_;
  double tick_ms_sum_ = 0;
};

}  // namespace convoy::monitor
