// SPDX-License-Identifier: Apache-2.0
//
// How a training failed, in its events, where its ranks could not tell it.
#pragma once

#include <chrono>

#include "convoy/base/log.h"
#include "convoy/launch/launcher.h"
#include "convoy/telemetry/run_folder.h"

namespace convoy::apps {

// Rank 0 tells of what it sees fail. It can not of what ends it at once, nor of a rank that had not
// ended: of these this does. What was refused before it began is no run that failed. `begin`: of
// the ranks.
void record_failure(const Log& log, const telemetry::RunFolder& folder,
                    const launch::LaunchReport& report,
                    std::chrono::system_clock::time_point begin);

}  // namespace convoy::apps
