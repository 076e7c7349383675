// SPDX-License-Identifier: Apache-2.0
//
// Ranks and nodes that other programs' files and variables request. They are not settings of a run;
// the launcher uses them when its own flags are not given. Plain data.
#pragma once

#include <string>

namespace convoy::settings {

struct RequestedValue {
  std::string value;   // empty = not requested
  std::string origin;  // "accelerate.yaml:7", "environment NUM_GPUS"
};

struct LaunchRequest {
  RequestedValue ranks_of_node;
  RequestedValue nodes;
  RequestedValue node_rank;
  RequestedValue master_addr;
  RequestedValue master_port;
  RequestedValue devices;  // "cpu"
  // GPUs that one rank computes on: with parallel.strategy dp its replicas; 0 = all.
  int devices_of_rank = 1;
  bool reads_accelerate = false;  // a file of accelerate's is among the sources
};

}  // namespace convoy::settings
