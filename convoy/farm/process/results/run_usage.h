// SPDX-License-Identifier: Apache-2.0
//
// The device CSV of a run: what the GPUs of this host and all of its workers did since the last
// look. One thread.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>

#include "convoy/farm/process/results/usage_csv.h"
#include "convoy/farm/process/workers/row_worker_process.h"
#include "convoy/machine/monitor/gpus/device_reader.h"

namespace convoy::process {

class RunUsage {
 public:
  // Throws IoError.
  RunUsage(const std::filesystem::path& path, double interval_seconds);

  // Signs by worker, from the supervisor. Writes a row per device when the interval is over.
  void add(const std::map<size_t, WorkerStatus>& statuses);

 private:
  using Clock = std::chrono::steady_clock;

  UsageCsv csv_;
  monitor::DeviceReader devices_;
  double interval_seconds_;
  Clock::time_point last_ = Clock::now();
  std::map<size_t, WorkerStatus> before_;
};

// Usage between two readings `seconds` apart. A worker that was replaced begins at 0.
UsageFigures usage_between(const std::map<size_t, WorkerStatus>& before,
                           const std::map<size_t, WorkerStatus>& now, double seconds);

}  // namespace convoy::process
