// SPDX-License-Identifier: Apache-2.0
//
// Compares runs: their settings and their results.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "convoy/core/telemetry/runs/run_history.h"

namespace convoy::telemetry {

// One line of a comparison: a value per run, in their order; empty for a run without one.
struct ComparedValue {
  std::string name{};  // "train.learning_rate", "loss"
  std::vector<std::string> values{};
};

struct RunComparison {
  std::vector<std::string> runs{};  // names of the runs
  // The settings that differ; output folders and run names are left out.
  std::vector<ComparedValue> settings{};
  std::vector<ComparedValue> figures{};  // state, ranks, strategy, steps, losses, speed, time
  std::vector<ComparedValue> metrics{};  // the numbers of metrics.json
  std::vector<std::string> without_settings{};  // runs whose run.json holds no configuration
};

// Reads run.json and metrics.json of each run. At least two runs. Throws IoError.
RunComparison compare_runs(const std::vector<RunHistory>& runs);

// The lines of results and metrics to show to people: without metrics that are equal in all runs,
// and without values that another line already shows.
std::vector<ComparedValue> lines_to_tell(const RunComparison& comparison);

}  // namespace convoy::telemetry
