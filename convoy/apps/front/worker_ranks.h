// SPDX-License-Identifier: Apache-2.0
//
// convoy-worker on ranks.
#pragma once

#include <string>
#include <vector>

#include "convoy/apps/front/command.h"
#include "convoy/launch/launch_flags.h"
#include "convoy/launch/launcher.h"

namespace convoy::apps {

// How convoy-workers are started, but for their command and logs.
launch::LaunchPlan worker_plan(const Context& context);

// `convoy-worker COMMAND ARGUMENTS...` on the ranks of this host that `ranks` asks for, which share a folder; with one rank this process
// becomes it. `alone`: what can only be done by one, such as "a conversation"; empty = nothing. Prints a failure. Returns the exit code.
// Throws ConfigError.
int run_worker_on_ranks(const Context& context, const launch::HostRankFlags& ranks,
                        const std::string& command, const std::vector<std::string>& arguments,
                        const std::string& alone = {});

}  // namespace convoy::apps
