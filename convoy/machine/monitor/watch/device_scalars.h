// SPDX-License-Identifier: Apache-2.0
//
// The load of devices and host as curves of TensorBoard, over the steps of a training. A
// TensorBoard folder has one writer, so these curves are in a separate folder beside the events of
// rank 0, and TensorBoard shows that folder as another run. Units are as in devices.csv; the
// charts' titles name them.
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
