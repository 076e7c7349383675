// SPDX-License-Identifier: Apache-2.0
//
// Decides for a job of several nodes: its members and their ranks, the end of an attempt, the start
// of the next. Holds the key-value store of the ranks. Runs in the launcher of the node that hosts
// the rendezvous endpoint, on a thread of its own; every launcher, that one included, connects to
// it through a NodeLink. It has one port, which requires the job token.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convoy/core/base/log.h"
#include "convoy/core/base/wall_clock.h"
#include "convoy/core/telemetry/ranks/flight_record.h"
#include "convoy/launch/rendezvous/attempt_messages.h"
#include "convoy/launch/rendezvous/endpoint.h"
#include "convoy/launch/rendezvous/job_token.h"
#include "convoy/launch/rendezvous/restart_policy.h"

namespace convoy::rendezvous {

struct CoordinatorOptions {
  std::string run_id = "none";
  int min_nodes = 1;  // --nnodes MIN:MAX; equal = fixed
  int max_nodes = 1;
  RestartLimits restarts;
  std::chrono::milliseconds join_timeout{600'000};      // until min_nodes have joined
  std::chrono::milliseconds last_call_timeout{30'000};  // elastic: for more than min_nodes to join
  std::chrono::milliseconds resize_settle{2'000};  // a node that joins late must stay this long
  std::chrono::milliseconds heartbeat{1'000};
  std::chrono::milliseconds silence_limit{8'000};  // a node silent for this long is lost
  std::chrono::milliseconds stop_limit{330'000};   // for a node to end its ranks when asked to
  // These limits are for a node that has succeeded while others run on. Our own workers end
  // together, so it is a failure (13) after early_exit_limit. For foreign programs the limit is
  // absent, and a warning follows after early_exit_notice.
  std::optional<std::chrono::milliseconds> early_exit_limit;
  std::chrono::milliseconds early_exit_notice{300'000};
  std::chrono::milliseconds handshake_limit{3'000};   // for a connection to prove itself
  std::chrono::milliseconds notice_interval{15'000};  // "still waiting for node 1"
  int max_unproven = 256;                             // connections that have not proven themselves
  int64_t max_store_bytes = int64_t{1} << 30;         // all keys and values of an attempt
  WallClock wall_clock = wall_clock_ns;               // compared with each node's clock
  // Given the flight records of several nodes, returns a sentence about the rank that the others
  // wait for, for the job's end; empty = no such rank. No function: no search.
  std::function<std::string(const std::vector<telemetry::RankFlight>&)> judge = {};
  Log log;
};

class Coordinator {
 public:
  // Serves `listener` from now on. Throws ConfigError for options that contradict each other.
  Coordinator(CoordinatorOptions options, JobToken token, BoundListener listener);
  // Ends the job for all nodes if it has not ended. Blocks up to 2 s until they have received it.
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  const Endpoint& endpoint() const;  // its listening address, with the real port

 private:
  class Service;
  std::unique_ptr<Service> service_;
};

}  // namespace convoy::rendezvous
