// SPDX-License-Identifier: Apache-2.0
//
// Which end was the cause of the others, and the exit code that follows from it.
#pragma once

#include "convoy/launch/supervisor/launcher.h"

namespace convoy::launch {

// Sets root_cause and exit_code from the rest of `report`. Ranks that all end with 0 after a stop
// request say that all is well, as with torchrun.
void conclude(LaunchReport& report);

// Whether that end is no failure: the rank ended well, or as it was asked to. What it says when it
// makes way for other members does not count: it starts again.
bool ended_as_asked(const RankEnd& end, const LaunchReport& report);

}  // namespace convoy::launch
