// SPDX-License-Identifier: Apache-2.0
//
// Devices and host of a training as curves of TensorBoard, over its steps. A folder has one writer,
// so these are beside the events of rank 0 in a folder of their own, which TensorBoard shows as a
// run of that name. Units are as in devices.csv; the charts' titles name them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "convoy/core/base/log.h"
#include "convoy/core/telemetry/logs/tensorboard.h"
#include "convoy/machine/monitor/watch/machine_reading.h"

namespace convoy::monitor {

class DeviceScalars {
 public:
  DeviceScalars(std::filesystem::path folder, const Log& log)
      : folder_(std::move(folder)), log_(log) {}

  // Training begins after this step: the file is made now, and entries of earlier files for later
  // steps no longer count.
  void begin(int64_t step);
  // Does nothing before begin().
  void add(const MachineReading& reading, int64_t step);

 private:
  std::filesystem::path folder_;
  Log log_;
  std::optional<telemetry::EventWriter> writer_;
};

}  // namespace convoy::monitor
