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
  bool is_here = true;  // else rank 0 sends it to the ranks
};

// Logs notices and warnings. Throws ConfigError where the configuration has errors, or is not here
// and cannot be sent.
NodeConfig read_node_config(const TrainStart& start);

// The same on a node that nobody sends one to: says what is missing.
NodeConfig read_own_config(const TrainStart& start);

// Reads the configuration for its errors alone: files of other launchers may place ranks. Model and
// rows may be missing, and the configuration itself.
void check_launch_settings(const TrainStart& start);

}  // namespace convoy::apps
