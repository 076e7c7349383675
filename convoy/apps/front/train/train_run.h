// SPDX-License-Identifier: Apache-2.0
//
// A training from its run folder to its end.
#pragma once

#include <string>

#include "convoy/apps/front/train/train_node_config.h"

namespace convoy::apps {

// Makes or joins the run folder, starts the ranks of this node and waits for them. `to_go_on`: the
// command that resumes the work; empty = the command that resumes this training. Returns the exit
// code. Throws convoy::Error. Blocks.
int run_training(const TrainStart& start, NodeConfig config, const std::string& to_go_on);

}  // namespace convoy::apps
