// SPDX-License-Identifier: Apache-2.0
//
// Which runs to remove from a folder of many, and their removal. A run that goes on is never among
// them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "convoy/core/telemetry/run_history.h"

namespace convoy::telemetry {

struct CleaningWish {
  int64_t keep_best =
      0;  // remove all trainings but so many with the lowest loss; 0 = do not ask for it
  double older_than_days = 0;     // only runs whose last event is older; 0 = any
  bool only_checkpoints = false;  // remove checkpoints alone: what a run made stays
};

struct RemovableRun {
  std::filesystem::path path{};    // what is removed: the run's folder, or its checkpoints
  std::filesystem::path folder{};  // of the run
  std::string name{};
  std::string reason{};  // "never took a step", "loss 1.2043 is not among the best 3"
  int64_t bytes = 0;
};

// Of `runs`: with keep_best all trainings beyond the best, without it those that never took a step
// and left nothing (no adapter, model, checkpoint or samples); with only_checkpoints those that
// finished and have any. The measure is the lowest evaluation loss, else the last loss.
std::vector<RemovableRun> removable_runs(const std::vector<RunHistory>& runs,
                                         const CleaningWish& wish, double now_seconds);

// All of `runs`, as they were named.
std::vector<RemovableRun> named_runs(const std::vector<RunHistory>& runs, const CleaningWish& wish);

// Throws ConfigError when the run goes on by now, IoError when a file can not be removed.
void remove_run(const RemovableRun& run);

}  // namespace convoy::telemetry
