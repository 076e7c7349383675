// SPDX-License-Identifier: Apache-2.0
//
// The texts that the steps of a run have learnt from: RUN/rollouts/step-N.jsonl, a row per text. A
// step that learns from the texts of an earlier step has no file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace convoy::telemetry {

// `folder`: RUN/rollouts.
std::filesystem::path rollout_file(const std::filesystem::path& folder, int64_t step);

// The steps that have a file, ascending.
std::vector<int64_t> rollout_steps(const std::filesystem::path& run);

// Calls `take` with each row of a step's file. Skips lines that cannot be read.
void for_each_rollout(const std::filesystem::path& run, int64_t step,
                      const std::function<void(nlohmann::ordered_json)>& take);

// The best, the worst and the longest texts of a step, `most` of each, without their tokens; each
// row begins with "shown_as": "best", "worst" or "longest".
std::vector<nlohmann::ordered_json> notable_rollouts(const std::filesystem::path& run, int64_t step,
                                                     size_t most);

}  // namespace convoy::telemetry
