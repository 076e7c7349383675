// SPDX-License-Identifier: Apache-2.0
//
// What files and variables of other programs say of ranks and nodes: no settings of a run, but what
// its launcher is asked for where its own flags say nothing. Plain data.
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
