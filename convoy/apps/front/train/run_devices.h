// SPDX-License-Identifier: Apache-2.0
//
// Watches the devices of this host during a training, and reports on them at its end.
#pragma once

#include <filesystem>
#include <memory>

#include "convoy/apps/front/command.h"
#include "convoy/core/telemetry/runs/run_folder.h"
#include "convoy/launch/supervisor/job_setup.h"
#include "convoy/machine/monitor/watch/run_recorder.h"

namespace convoy::apps {

struct RunDevicesOptions {
  double interval_s = 5;
  bool own = true;  // this launcher's node has rank 0
  // Folder of rank 0's TensorBoard files; empty = none.
  std::filesystem::path tensorboard = {};
};

class RunDevices {
 public:
  // Starts watching. `context`, `setup` and `folder` must outlive this object.
  RunDevices(const Context& context, const launch::JobSetup& setup,
             const telemetry::RunFolder& folder, const RunDevicesOptions& options);

  // Call it after the ranks have ended: writes device usage into the run's metrics.json and logs
  // it.
  void conclude();

 private:
  monitor::RunRecorderOptions recorder_options(const RunDevicesOptions& options) const;
  nlohmann::ordered_json report(const monitor::TrainingRecord& training) const;

  const Context& context_;
  const launch::JobSetup& setup_;
  const telemetry::RunFolder& folder_;
  std::unique_ptr<monitor::RunRecorder> recorder_;
};

}  // namespace convoy::apps
