// SPDX-License-Identifier: Apache-2.0
//
// The activity of devices and of the engine during a run, as CSV: a row per device and tick. The
// first ten columns have the names and units of the multi-GPU processing guide's monitor_gpu.py, so
// its readers keep working.
#pragma once

#include <chrono>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include "convoy/machine/monitor/gpus/device_reader.h"

namespace convoy::process {

// Figures over all workers of this host. Rates and shares refer to the time since the last tick.
struct UsageFigures {
  double tokens_per_second = 0;
  int64_t running = 0;  // number of running requests
  int64_t waiting = 0;
  double kv_use = 0;  // used share of the KV cache, 0 to 1
  double prefill_share = 0;
  double decode_share = 0;
  int64_t leases = 0;  // number of leased rows
};

class UsageCsv {
 public:
  // Appends to a file with the same header; replaces any other file. Throws IoError.
  explicit UsageCsv(const std::filesystem::path& path);

  // If there is no device, writes one row of N/A values that is named "No GPU found". Flushes the
  // file. Throws IoError.
  void add(std::span<const monitor::DeviceReading> devices, const UsageFigures& figures);

  static std::string header();

 private:
  std::filesystem::path path_;
  std::ofstream file_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace convoy::process
