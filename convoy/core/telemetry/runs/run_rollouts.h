// SPDX-License-Identifier: Apache-2.0
//
// The texts that the steps of a run have learnt from: RUN/rollouts/step-N.jsonl, a row per text. A
// step that learns from the texts of an earlier step has no file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "convoy/core/base/error.h"

namespace convoy::telemetry {

// `folder`: RUN/rollouts.
std::filesystem::path rollout_file(const std::filesystem::path& folder, int64_t step);

// The steps that have a file, ascending.
std::vector<int64_t> rollout_steps(const std::filesystem::path& run);

// Names the steps whose file is gone or empty, among the steps that the run's events tell of or
// that lie between its files. None: there is no such step, or no file at all.
std::optional<DataError> missing_rollouts(const std::filesystem::path& run);

// Calls `take` with each row of a step's file. A line that is no such row is left out; the first
// of them is returned as an error that names file and line, as is a file that cannot be read.
std::optional<DataError> for_each_rollout(const std::filesystem::path& run, int64_t step,
                                          const std::function<void(nlohmann::ordered_json)>& take);

struct NotableRollouts {
  std::vector<nlohmann::ordered_json> rows;
  std::optional<DataError> damage;  // as for_each_rollout()
};

// The best, the worst and the longest texts of a step, `most` of each, without their tokens; each
// row begins with "shown_as": "best", "worst" or "longest". Without rewards the longest alone.
NotableRollouts notable_rollouts(const std::filesystem::path& run, int64_t step, size_t most);

}  // namespace convoy::telemetry
