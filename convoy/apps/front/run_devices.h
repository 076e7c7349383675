// SPDX-License-Identifier: Apache-2.0
//
// The devices of this host beside a training: watched while it runs, and told at its end.
#pragma once

#include <filesystem>
#include <memory>

#include "convoy/apps/front/command.h"
#include "convoy/core/telemetry/run_folder.h"
#include "convoy/launch/supervisor/job_setup.h"
#include "convoy/machine/monitor/run_recorder.h"

namespace convoy::apps {

struct RunDevicesOptions {
  double interval_s = 5;
  bool own = true;  // this launcher's node has rank 0, whose folder is the run's
  std::filesystem::path tensorboard = {};  // where rank 0 writes its events; empty = nowhere
};

class RunDevices {
 public:
  // Begins to watch. `context`, `setup` and `folder` outlive this.
  RunDevices(const Context& context, const launch::JobSetup& setup,
             const telemetry::RunFolder& folder, const RunDevicesOptions& options);

  // When the ranks have ended: what they took goes into the run's metrics.json and is said.
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
