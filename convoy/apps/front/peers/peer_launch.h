// SPDX-License-Identifier: Apache-2.0
//
// Input in other launchers' forms: ranks and nodes of an accelerate file, NUM_GPUS, NCCL variables
// as words of the command.
#pragma once

#include <string>
#include <vector>

#include "convoy/core/base/log.h"
#include "convoy/core/config/file_stack.h"
#include "convoy/core/settings/launch_request.h"
#include "convoy/launch/supervisor/job_setup.h"
#include "convoy/launch/supervisor/launch_flags.h"

namespace convoy::apps {

// Moves NAME=VALUE words for libraries (NCCL_DEBUG=INFO) from `words` into this process's
// environment, which the ranks inherit.
void export_library_variables(std::vector<std::string>& words, const Log& log);

// Moves the words of SFT-Play's make targets that say where ranks run (NNODES=2, NODE_RANK=0,
// MASTER_ADDR=HOST, MASTER_PORT=N, NPROC_PER_NODE=N) from `words` into `launch_request`.
void take_node_words(std::vector<std::string>& words, settings::LaunchRequest& launch_request);

// Throws ConfigError for a word that a launcher passes to each rank (RANK=0, WORLD_SIZE=2), and for
// an `accelerate config` file beside the configuration of the training. The hint says what to type.
void refuse_launcher_words(const std::vector<std::string>& words);

// Throws ConfigError for an `accelerate config` file in place of the configuration of the training.
void refuse_accelerate_file(const config::FileStack& files);

// Sets the flags that the user did not give from `launch_request`, and logs them.
void take_launch_request(const settings::LaunchRequest& launch_request,
                         launch::MemberFlags& members, launch::DeviceFlags& devices,
                         const Log& log);

// Logs that the file written by `accelerate config` is read only when a flag names it.
void say_unread_accelerate_file(const settings::LaunchRequest& launch_request, const Log& log);

// Number of ranks of the whole job; 0 when other nodes decide it.
int64_t ranks_of_job(const launch::JobSetup& setup);

}  // namespace convoy::apps
