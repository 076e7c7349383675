// SPDX-License-Identifier: Apache-2.0
//
// What people bring from other launchers: an accelerate file's ranks and nodes, NUM_GPUS, variables
// of NCCL as words of the command.
#pragma once

#include <string>
#include <vector>

#include "convoy/core/base/log.h"
#include "convoy/core/settings/launch_wishes.h"
#include "convoy/launch/supervisor/job_setup.h"
#include "convoy/launch/supervisor/launch_flags.h"

namespace convoy::apps {

// Takes NAME=VALUE words of libraries under the ranks (NCCL_DEBUG=INFO) out of `words`, into this
// process's environment, which the ranks inherit.
void export_library_variables(std::vector<std::string>& words, const Log& log);

// Fills the flags that were not given, and says so.
void take_wishes(const settings::LaunchWishes& wishes, launch::MemberFlags& members,
                 launch::DeviceFlags& devices, const Log& log);

// Ranks of the whole job; 0 where other nodes decide.
int64_t ranks_of_job(const launch::JobSetup& setup);

}  // namespace convoy::apps
