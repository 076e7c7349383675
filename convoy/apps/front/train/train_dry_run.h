// SPDX-License-Identifier: Apache-2.0
//
// `convoy train --dry-run`: checks everything, prints the plan, and leaves no files.
#pragma once

#include "convoy/apps/front/train/train_node_config.h"

namespace convoy::apps {

// This node's ranks try the plan; other nodes are assumed to start as many. Returns the exit code.
// Throws convoy::Error. Blocks.
int dry_run_training(const TrainStart& start, const NodeConfig& config);

}  // namespace convoy::apps
