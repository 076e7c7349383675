// SPDX-License-Identifier: Apache-2.0
//
// The device CSV of a run: the activity of this host's GPUs and workers since the last row. One
// thread.
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

  // `statuses`: the last report of each worker, from the supervisor. Writes a row per device when
  // the interval is over.
  void add(const std::map<size_t, WorkerStatus>& statuses);

 private:
  using Clock = std::chrono::steady_clock;

  UsageCsv csv_;
  monitor::DeviceReader devices_;
  double interval_seconds_;
  Clock::time_point last_ = Clock::now();
  std::map<size_t, WorkerStatus> before_;
};

// The usage between two readings that are `seconds` apart. The counts of a replaced worker begin at
// 0.
UsageFigures usage_between(const std::map<size_t, WorkerStatus>& before,
                           const std::map<size_t, WorkerStatus>& now, double seconds);

}  // namespace convoy::process
