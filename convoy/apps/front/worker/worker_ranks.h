// SPDX-License-Identifier: Apache-2.0
//
// Runs convoy-worker on ranks.
#pragma once

#include <string>
#include <vector>

#include "convoy/apps/front/command.h"
#include "convoy/launch/supervisor/job_setup.h"
#include "convoy/launch/supervisor/launch_flags.h"
#include "convoy/launch/supervisor/launcher.h"

namespace convoy::apps {

// A request for convoy-workers on the devices given by the flags.
launch::SetupRequest worker_request(const Context& context, const launch::DeviceFlags& devices);

// "cuda" or "cpu", for the workers.
std::string devices_of(const launch::JobSetup& setup);

// Warns of notable facts about the placement: overridden flags, idle GPUs.
void say_notes(const Context& context, const launch::JobSetup& setup);

// The launch plan of convoy-workers, without command and logs.
launch::LaunchSpec worker_spec(const Context& context);

// The ranks of one host and their devices.
struct HostRanks {
  launch::HostRankFlags members;
  launch::DeviceFlags devices;
};

// Runs `convoy-worker COMMAND ARGUMENTS...` on the ranks of this host that `ranks` requests; they
// share a folder. A single rank needs no launcher: this process becomes that rank. `alone` names
// work that only one rank can do ("a conversation"); empty = none. Prints a failure and returns the
// exit code.
// Throws ConfigError, DeviceError.
int run_worker_on_ranks(const Context& context, const HostRanks& ranks, const std::string& command,
                        const std::vector<std::string>& arguments, const std::string& alone = {});

}  // namespace convoy::apps
