// SPDX-License-Identifier: Apache-2.0
//
// The role of a submitted command's program in its job: a launcher that starts the ranks of its
// node, a launcher that cannot be asked to save, or neither. Decided by its name alone.
#pragma once

#include <string>
#include <vector>

#include "convoy/launch/submit/submit_settings.h"

namespace convoy::launch {

// Returns "torchrun", "accelerate" or "deepspeed", also when Python runs it; empty = none of them.
std::string foreign_launcher(const std::vector<std::string>& command);

// Refuses torchrun and the like: they end with 1 whatever their ranks end with, and die of the
// signal that asks ranks to save, so under SLURM and MPI their jobs never continue. Throws
// ConfigError, unless the settings request neither a save nor another start.
void refuse_foreign_launcher(const SubmitSettings& settings,
                             const std::vector<std::string>& command);

// Returns one sentence for each thing that the job will do and its flags do not suggest. Looks for
// the hostfile.
std::vector<std::string> submit_warnings(const SubmitSettings& settings,
                                         const std::vector<std::string>& command);

}  // namespace convoy::launch
