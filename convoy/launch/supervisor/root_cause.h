// SPDX-License-Identifier: Apache-2.0
//
// Finds the rank's end that caused the others, and the exit code that follows from it.
#pragma once

#include "convoy/launch/supervisor/launcher.h"

namespace convoy::launch {

// Sets root_cause and exit_code from the rest of `report`. When all ranks end with 0 after a stop
// request the result is success, as with torchrun.
void conclude(LaunchReport& report);

// True when the rank succeeded or stopped on request. During a membership change its exit code is
// ignored, because it restarts.
bool ended_as_asked(const RankEnd& end, const LaunchReport& report);

}  // namespace convoy::launch
