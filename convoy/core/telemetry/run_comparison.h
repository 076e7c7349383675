// SPDX-License-Identifier: Apache-2.0
//
// What tells runs apart: their settings, and where they came to.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "convoy/core/telemetry/run_history.h"

namespace convoy::telemetry {

// One line of a comparison: a value per run, in their order; empty where a run has none.
struct ComparedValue {
  std::string name{};  // "train.learning_rate", "loss"
  std::vector<std::string> values{};
};

struct RunComparison {
  std::vector<std::string> runs{};  // names
  std::vector<ComparedValue>
      settings{};  // that differ; places of output and names of runs are left out
  std::vector<ComparedValue> figures{};  // state, ranks, strategy, steps, losses, speed, time
  std::vector<ComparedValue> metrics{};  // the numbers of metrics.json
  std::vector<std::string> without_settings{};  // runs whose run.json holds no configuration
};

// Reads run.json and metrics.json of each run. At least two runs. Throws IoError.
RunComparison compare_runs(const std::vector<RunHistory>& runs);

// Figures and metrics for people: of the metrics those that differ, and nothing that another line
// has said.
std::vector<ComparedValue> lines_to_tell(const RunComparison& comparison);

}  // namespace convoy::telemetry
