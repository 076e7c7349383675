// SPDX-License-Identifier: Apache-2.0
//
// The rank of this process and the size of its job, from torchrun's worker environment. No other
// file reads that environment.
#pragma once

#include <string>

namespace convoy::comm {

struct RankEnvironment {
  int rank = 0;
  int world = 1;
  int local_rank = 0;
  int local_world = 1;
  int replicas = 1;  // number of ranks in this process; more than 1: they are threads
  // number of this group among the groups that this process joins with the same ranks, in the order
  // of joining
  int group = 0;
  // CONVOY_FULL_WORLD_SIZE: the world of an elastic job when all its nodes take part. Equals
  // `world` when the variable is not set.
  int full_world = 1;
  std::string master_address = "127.0.0.1";
  int master_port = 29500;
  std::string store_file;  // CONVOY_STORE_FILE: rendezvous by a file on this host; empty = TCP
  // CONVOY_STORE_ADDRESS: host:port of the coordinator's store, which is used rather than the file;
  // needs CONVOY_JOB_TOKEN.
  std::string store_address;
  // CONVOY_OWN_ADDRESS: the address by which other hosts reach this one; empty = the address of the
  // interface that routes to MASTER_ADDR.
  std::string own_address;
  // GLOO_SOCKET_IFNAME: the network interface that the user chose; used rather than both addresses
  std::string gloo_interface;
  std::string run_id;  // TORCHELASTIC_RUN_ID
  int restart_count = 0;
  // TORCHELASTIC_ERROR_FILE: where a failed rank leaves its error; empty = none.
  std::string error_file;
  // TORCHELASTIC_USE_AGENT_STORE: the agent hosts the store, so rank 0 is a client
  bool agent_hosts_store = false;

  bool one_host() const { return local_world == world; }
};

// World 1 when RANK and WORLD_SIZE are not set. Throws ConfigError for one without the other, or
// numbers out of range.
RankEnvironment read_rank_environment();

}  // namespace convoy::comm
