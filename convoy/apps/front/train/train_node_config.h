// SPDX-License-Identifier: Apache-2.0
//
// The configuration of a training as one node knows it. A node that takes part may lack the file:
// rank 0's node sends its own to the ranks.
#pragma once

#include <memory>

#include "convoy/apps/front/train/train_start.h"
#include "convoy/core/config/resolve.h"
#include "convoy/core/settings/train_settings.h"

namespace convoy::apps {

struct NodeConfig {
  std::unique_ptr<settings::TrainSettings> train;  // `resolved` points into it
  config::Resolved resolved;
  bool is_here = true;  // false: rank 0 sends the configuration to the ranks
};

// Reads the node's configuration. Logs notices and warnings. Throws ConfigError when the
// configuration has errors, or when it is missing here and rank 0 cannot send it.
NodeConfig read_node_config(const TrainStart& start);

// As read_node_config(), for a node that receives no configuration. The error says what is missing.
NodeConfig read_own_config(const TrainStart& start);

// For --placement: reads the configuration only to report its errors, because it may name files of
// other launchers that place ranks. The model, the rows and the configuration may be missing.
void check_launch_settings(const TrainStart& start);

}  // namespace convoy::apps
