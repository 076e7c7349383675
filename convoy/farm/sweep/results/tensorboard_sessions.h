// SPDX-License-Identifier: Apache-2.0
//
// The cells of a sweep as sessions of TensorBoard's HParams page: one run per cell. Cells that
// differ only in their seed are a group.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "convoy/core/base/log.h"
#include "convoy/farm/sweep/results/cell_result.h"

namespace convoy::sweep {

// TensorBoard reads one file per run and keeps all runs in memory, so their number is limited.
constexpr int64_t kMostTensorboardRuns = 1'000;
// With more points nothing is written.
constexpr int64_t kMostTensorboardPoints = 10'000;

// Writes the experiment into FOLDER, and the session of each cell, with its value or its failure,
// into FOLDER/POINT/seed-N. Cells without a result have no session. With more cells than
// kMostTensorboardRuns there is one session per point, FOLDER/POINT, with the median and the
// quartiles of its values. The sessions of an earlier call are removed, even if they belong to
// another sweep: a folder has one sweep. Returns a sentence about the written files. Empty =
// nothing was written, because the folder already holds these results. Throws IoError, and
// ConfigError like require_sessions_folder().
std::string write_tensorboard_sessions(const SweepResults& results,
                                       const std::filesystem::path& folder, const Log& log);

// Throws ConfigError for a folder that holds files and was not made by
// write_tensorboard_sessions(): such files belong to the user.
void require_sessions_folder(const std::filesystem::path& folder);

}  // namespace convoy::sweep
