// SPDX-License-Identifier: Apache-2.0
//
// How a training failed, in its events, where its ranks could not tell it; and a run that was
// refused.
#pragma once

#include <chrono>

#include "convoy/core/base/log.h"
#include "convoy/core/telemetry/run_folder.h"
#include "convoy/launch/supervisor/launcher.h"

namespace convoy::apps {

// Rank 0 tells of what it sees fail. It can not of what ends it at once, nor of a rank that had not
// ended: of these this does. What was refused before it began is no run that failed. `begin`: of
// the ranks.
void record_failure(const Log& log, const telemetry::RunFolder& folder,
                    const launch::LaunchReport& report,
                    std::chrono::system_clock::time_point begin);

// Whether the ranks refused the run, in words of their own, before all of them had accepted it:
// with that, rank 0 adds the start to the run's record.
bool is_refused(const telemetry::RunFolder& folder, const launch::LaunchReport& report);

// Removes the folder of a run that was refused: it holds its configuration, and logs that say what
// is said here. The report names no file of it any more.
void remove_folder(const telemetry::RunFolder& folder, launch::LaunchReport& report);

}  // namespace convoy::apps
