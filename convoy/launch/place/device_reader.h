// SPDX-License-Identifier: Apache-2.0
//
// What the NVIDIA GPUs of this host are doing now, by NVML.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convoy/launch/place/devices.h"

namespace convoy::launch {

class Nvml;

// What a GPU or its driver does not tell is empty.
struct DeviceReading {
  int index = -1;  // NVML's
  std::string name = {};
  std::optional<int64_t> temperature_celsius = {};
  // Share of the last sample period (1/6 to 1 s) in which a kernel ran, in which memory was read or written.
  std::optional<int64_t> busy_percent = {};
  std::optional<int64_t> memory_busy_percent = {};
  std::optional<int64_t> memory_used_mib =
      {};  // without what the driver keeps, where it says how much
  std::optional<int64_t> memory_total_mib = {};
  std::optional<double> power_watts = {};
};

// Keeps NVML open: opening costs tens of milliseconds, a reading a few. One thread.
class DeviceReader {
 public:
  explicit DeviceReader(const DeviceSources& sources = {});
  ~DeviceReader();

  std::vector<DeviceReading> read() const;  // empty without GPUs

 private:
  std::unique_ptr<Nvml> nvml_;
};

}  // namespace convoy::launch
