// SPDX-License-Identifier: Apache-2.0
//
// torchrun's worker environment (launch.md section 2): a rank's description of itself and its job.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "convoy/launch/place/origin.h"

namespace convoy::launch {

// The whole job in one attempt, and this node's part of it.
struct JobLayout {
  std::string run_id = "none";  // as torchrun names a job that was given no id
  std::string role = "default";
  int node_rank = 0;
  int num_nodes = 1;
  int first_rank = 0;        // the global rank of the first rank started here
  int first_local_rank = 0;  // other than 0 only for a rank that another launcher placed
  int num_local_ranks = 1;   // started here
  int local_world_size = 0;  // ranks on this node; 0 = num_local_ranks
  int world_size = 1;
  std::string master_address = "127.0.0.1";
  int master_port = 0;
  int restart_count = 0;  // attempts before this one, whatever ended them
  int max_restarts = 0;
  bool agent_hosts_store = false;  // the torchrun around this rank listens at master_port

  bool all_ranks_here() const { return num_local_ranks == world_size; }
};

// The environment of the `index`th rank started here, without TORCHELASTIC_ERROR_FILE and variables
// that only some programs get. TORCH_NCCL_ASYNC_ERROR_HANDLING is left to the user and the library:
// torchrun's 1 breaks flight recorder dumps (pytorch #121055).
std::map<std::string, std::string> worker_environment(const JobLayout& job, int index);

// Defaults for variables of libraries, left out when `environment` sets them or an equivalent
// variable.
std::map<std::string, std::string> library_defaults(
    const std::map<std::string, std::string>& environment);
// The same as rows of --explain, and rows for variables that matter although they are not set.
// `amd`: the GPUs are AMD's.
std::vector<Origin> library_origins(const std::map<std::string, std::string>& environment,
                                    bool amd);

}  // namespace convoy::launch
