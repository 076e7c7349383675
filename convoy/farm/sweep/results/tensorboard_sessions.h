// SPDX-License-Identifier: Apache-2.0
//
// The cells of a sweep as sessions of TensorBoard's HParams page: a run for each cell, which is a
// seed; cells that differ by their seed alone are a group.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "convoy/core/base/log.h"
#include "convoy/farm/sweep/results/cell_result.h"

namespace convoy::sweep {

// TensorBoard reads a file of each run, and keeps all of them in memory.
constexpr int64_t kMostTensorboardRuns = 1'000;
// With more points than that nothing is written.
constexpr int64_t kMostTensorboardPoints = 10'000;

// FOLDER has the experiment, and FOLDER/POINT/seed-N the session of a cell with its value, or its
// failure; cells without a result have none. With more cells than kMostTensorboardRuns there is one
// session for each point, FOLDER/POINT, with the median of its values and the quartiles. The
// sessions of an earlier call are removed, whichever sweep they belong to: a folder has one sweep.
// Returns a sentence about what was written; empty = nothing was, since the folder holds these
// results. Throws ConfigError as require_sessions_folder(), IoError.
std::string write_tensorboard_sessions(const SweepResults& results,
                                       const std::filesystem::path& folder, const Log& log);

// Throws ConfigError for a folder that holds files and was not made by
// write_tensorboard_sessions(): such files belong to the user.
void require_sessions_folder(const std::filesystem::path& folder);

}  // namespace convoy::sweep
