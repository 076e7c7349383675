// SPDX-License-Identifier: Apache-2.0
//
// `convoy process monitor`: the device CSV alone, as the processing guide's monitor writes it.
#pragma once

#include <string>
#include <vector>

#include "convoy/apps/front/command.h"

namespace convoy::apps {

Action process_monitor_action();

// `arguments`: what follows the word `monitor`. Runs until the time is over or a signal comes. Throws ConfigError,
// IoError.
int run_process_monitor(Context& context, const std::vector<std::string>& arguments);

}  // namespace convoy::apps
