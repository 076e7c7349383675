// SPDX-License-Identifier: Apache-2.0
//
// The closing message of a command that starts ranks.
#pragma once

#include "convoy/apps/front/command.h"
#include "convoy/launch/supervisor/launcher.h"

namespace convoy::apps {

// Prints the failure, if there was one, and its JSON line for scripts. Returns the exit code.
int say_how_it_ended(const Context& context, const launch::LaunchReport& report);

}  // namespace convoy::apps
