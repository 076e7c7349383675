// SPDX-License-Identifier: Apache-2.0
//
// Assigns ranks to nodes. No clock, no I/O; linear in the number of nodes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/launch/rendezvous/attempt_messages.h"

namespace convoy::rendezvous {

struct JoinedNode {
  int asked_rank = -1;     // the node rank that the node was started with, -1 = any
  int previous_rank = -1;  // in the last attempt, -1 = none
  bool hosts_coordinator = false;
  int num_local_ranks = 1;
};

// Assigns the node ranks 0..n-1 to `joined`, which is in the order of joining. Asked ranks come
// first, then ranks from the last attempt. Then the coordinator's node takes the lowest free rank,
// and the others follow in their order. With fewer nodes than `max_nodes` (elastic) the gaps are
// closed, in order.
std::vector<int> node_ranks(const std::vector<JoinedNode>& joined, int max_nodes);

// The first global rank of each node, by node rank, and the world size as the last element.
std::vector<int> first_ranks(const std::vector<int>& ranks_per_node);

}  // namespace convoy::rendezvous
