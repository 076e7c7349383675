// SPDX-License-Identifier: Apache-2.0
//
// Ranks and nodes that other programs' files and variables request. They are not settings of a run;
// the launcher uses them when its own flags are not given. Plain data.
#pragma once

#include <string>

namespace convoy::settings {

struct LaunchWish {
  std::string value;   // empty = nothing is said
  std::string origin;  // "accelerate.yaml:7", "environment NUM_GPUS"
};

struct LaunchWishes {
  LaunchWish ranks_of_node;
  LaunchWish nodes;
  LaunchWish node_rank;
  LaunchWish master_addr;
  LaunchWish master_port;
  LaunchWish devices;  // "cpu"
};

}  // namespace convoy::settings
