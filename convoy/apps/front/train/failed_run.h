// SPDX-License-Identifier: Apache-2.0
//
// Records failures of a training that its ranks could not record, and handles a run that was
// refused.
#pragma once

#include <chrono>

#include "convoy/core/base/log.h"
#include "convoy/core/telemetry/runs/run_folder.h"
#include "convoy/launch/supervisor/launcher.h"

namespace convoy::apps {

// Records a failure in the run's events. Rank 0 records the failures that it observes; it cannot
// record one that kills it at once, or one of a rank that had not ended. Does nothing for a run
// that was refused before it began. `begin`: the time when the ranks started.
void record_failure(const Log& log, const telemetry::RunFolder& folder,
                    const launch::LaunchReport& report,
                    std::chrono::system_clock::time_point begin);

// True when the ranks themselves refused the run before all of them accepted it; rank 0 adds the
// start to the run's record only on acceptance.
bool is_refused(const telemetry::RunFolder& folder, const launch::LaunchReport& report);

// Removes the folder of a refused run, which holds only its configuration and logs with the error
// reported here. The report then names no file of the folder.
void remove_folder(const telemetry::RunFolder& folder, launch::LaunchReport& report);

}  // namespace convoy::apps
