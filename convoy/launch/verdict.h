// SPDX-License-Identifier: Apache-2.0
//
// Which end was the cause of the others, and the exit code that follows from it.
#pragma once

#include "convoy/launch/launcher.h"

namespace convoy::launch {

// Sets root_cause and exit_code from the rest of `report`. Ranks that all ended with 0 after a stop request have done their
// work only if they say so when they have not (75); else it is 128 + signal, lest a requeue is missed.
void conclude(LaunchReport& report, bool says_when_stopped);

}  // namespace convoy::launch
