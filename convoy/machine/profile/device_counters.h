// SPDX-License-Identifier: Apache-2.0
//
// The activity of a run's devices and hosts while steps were traced.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "convoy/machine/profile/spans.h"

namespace convoy::profile {

struct DeviceCounter {
  std::string device;                                   // "gpu0 of node1"
  std::string name;                                     // "gpu_util_pct"
  std::string unit;                                     // "%"
  std::vector<std::pair<int64_t, double>> values = {};  // nanoseconds since 1970, in order
};

// Reads devices.csv and logs/devices-HOST.csv of the run folder, if they exist: the readings within
// `time`, one reading before `time` and one after it. Counters of one device are adjacent. `host`:
// the host of the first file. Throws IoError.
std::vector<DeviceCounter> read_device_counters(const std::filesystem::path& run_folder,
                                                const std::string& host, const Span& time);

}  // namespace convoy::profile
