// SPDX-License-Identifier: Apache-2.0
//
// Selects runs to remove from a folder of many, and removes them. A run in progress is never
// selected.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "convoy/core/telemetry/runs/run_history.h"

namespace convoy::telemetry {

struct CleaningRequest {
  int64_t keep_best =
      0;  // keep this many trainings with the lowest loss, remove the others; 0 = off
  double older_than_days = 0;     // only runs whose last event is older; 0 = any
  bool only_checkpoints = false;  // remove only checkpoints; results of the run stay
};

struct RemovableRun {
  std::filesystem::path path{};    // folder to remove: the run's, or its checkpoints
  std::filesystem::path folder{};  // the run's folder
  std::string name{};
  std::string reason{};  // "never took a step", "loss 1.2043 is not among the best 3"
  int64_t bytes = 0;
};

// With keep_best: all trainings of `runs` beyond the best. Without it: trainings that never took a
// step and left nothing (no adapter, model, checkpoint, samples or rollouts). With
// only_checkpoints: trainings that finished and have checkpoints. Ranked by the lowest evaluation
// loss, else by the last loss.
std::vector<RemovableRun> removable_runs(const std::vector<RunHistory>& runs,
                                         const CleaningRequest& request, double now_seconds);

// Selects all of `runs`, which the user named.
std::vector<RemovableRun> named_runs(const std::vector<RunHistory>& runs,
                                     const CleaningRequest& request);

// Throws ConfigError when the run is in progress by now, IoError when a file cannot be removed.
void remove_run(const RemovableRun& run);

}  // namespace convoy::telemetry
