// SPDX-License-Identifier: Apache-2.0
//
// The messages between the launchers of a job's nodes and its coordinator about one attempt: all
// ranks of all nodes from start to gone. Plain data; messages.h turns it into JSON and back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "convoy/core/telemetry/ranks/flight_record.h"

namespace convoy::rendezvous {

// A node's description of itself when it joins the job.
struct NodeOffer {
  std::string run_id = "none";
  int min_nodes = 1;   // MIN of this node's --nnodes MIN:MAX
  int max_nodes = 1;   // MAX; the coordinator refuses a node with another range
  int node_rank = -1;  // -1 = any
  int num_local_ranks = 1;
  std::string host_name = {};      // for messages only
  std::string address = {};        // --local-addr; empty = the interface that routes to the master
  bool hosts_coordinator = false;  // takes node rank 0 when no node requests a rank
};

// The rank of this node in an attempt.
struct Assignment {
  int attempt = 0;  // counts restarts and resizes; also the prefix of the store's keys
  int failures = 0;
  int resizes = 0;
  int restarts = 0;
  int node_rank = 0;
  int first_rank = 0;  // global rank of local rank 0
  int world_size = 1;
  std::vector<int> ranks_per_node;  // by node rank; its size is the number of nodes
  std::string master_address;       // address of node 0, as the other nodes reach it
  int master_port = 0;              // offered by node 0 for this attempt
  std::string own_address;          // this node's, as the others reach it: bind Gloo and NCCL to it
  std::string store_address;        // host:port of the key-value store: CONVOY_STORE_ADDRESS

  int num_nodes() const { return static_cast<int>(ranks_per_node.size()); }
};

// Why an attempt ends. Members that are unknown keep their defaults.
struct FailureCause {
  int exit_code = 0;   // the failed rank's exit code: 128 + n for signal n
  int node_rank = -1;  // the coordinator fills in node_rank and host
  std::string host = {};
  int rank = -1;                // global
  std::string sentence = {};    // the rank's own error message
  std::string last_lines = {};  // the last lines it wrote, some kilobytes at most

  // "rank 3 on node 1 (host-b): out of memory (exit code 12)".
  std::string text() const;
};

// The result of an attempt on one node, once all its processes there are gone.
struct AttemptEnd {
  std::vector<int> exit_codes;        // by local rank
  std::optional<int64_t> progress;    // the highest step that a rank reached; absent = unknown
  std::optional<FailureCause> cause;  // the root cause in the view of this node; absent = success
  // Flight records of this node's ranks when the attempt began to fail: the coordinator judges the
  // records of all nodes together.
  std::vector<telemetry::RankFlight> flights = {};
};

}  // namespace convoy::rendezvous
