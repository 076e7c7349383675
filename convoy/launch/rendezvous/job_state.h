// SPDX-License-Identifier: Apache-2.0
//
// The decisions of the coordinator, without its sockets: events and the time go in, messages to
// nodes come out. Deterministic. One thread.
//
//   gathering --all there--> running --failure, resize, stop--> stopping --all ended--> gathering
//                               |                                    |
//                               +--all ended---------> over <--------+
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "convoy/launch/rendezvous/attempt_messages.h"
#include "convoy/launch/rendezvous/coordinator.h"
#include "convoy/launch/rendezvous/node_link.h"
#include "convoy/launch/rendezvous/restart_policy.h"

namespace convoy::rendezvous {

using NodeId = uint64_t;  // names one connection of one launcher; never used twice
using Clock = std::chrono::steady_clock;

struct Waiting {  // a line about the nodes that are still missing
  std::string words;
};

// An attempt begins. The message common to all nodes is stored once, since thousands of nodes may
// start at once.
struct Start {
  std::shared_ptr<const Assignment> common;
  int node_rank = 0;
  int first_rank = 0;
  std::string own_address;

  Assignment assignment() const;
};

struct JobMessage {
  NodeId to = 0;
  std::variant<Start, Notice, Waiting> what;
};

struct Refusal {
  int exit_code = 2;
  std::string words;
  bool retry_later = false;  // the place may become free in a few seconds
};

// The origin of a node's connection, as the coordinator sees it.
struct NodeOrigin {
  std::string peer_address;
  std::string address_here;  // the address of this host by which the node came
};

class JobState {
 public:
  enum class Phase { Gathering, Running, Stopping, Over };

  JobState(CoordinatorOptions options, Clock::time_point now);

  // Events. Reports of another attempt than the current one are ignored.
  std::optional<Refusal> join(NodeId node, const NodeOffer& offer, const NodeOrigin& origin,
                              Clock::time_point now);
  // `last_attempt`: the attempt that the node was assigned last, -1 = none.
  void ready(NodeId node, int last_attempt, int master_port, Clock::time_point now);
  void failure(NodeId node, int attempt, FailureCause cause, Clock::time_point now);
  // The node's ranks were asked to stop by `signal`. An elastic job goes on without the node if
  // enough nodes are left, else all nodes stop.
  void stop_request(NodeId node, int signal, Clock::time_point now);
  void attempt_end(NodeId node, int attempt, AttemptEnd end, Clock::time_point now);
  // `why` is empty for a node that leaves of its own accord.
  void leave(NodeId node, const std::string& why, Clock::time_point now);
  void lost(NodeId node, const std::string& how, Clock::time_point now);
  void heard(NodeId node, Clock::time_point now);
  void tick(Clock::time_point now);  // silence and deadlines: call it a few times per second
  void shut_down(int exit_code, const std::string& words);

  std::vector<JobMessage> take_messages();

  Phase phase() const { return phase_; }
  int attempt() const { return policy_.attempt(); }  // the attempt whose keys the store holds
  bool has(NodeId node) const { return nodes_.count(node) != 0; }
  // Returns text such as "node 1 host-b (10.0.0.2)", without the number if the node has none.
  std::string name_of(NodeId node) const;
  size_t num_nodes() const { return nodes_.size(); }

 private:
  struct Node {
    NodeOffer offer;
    NodeOrigin origin;
    int node_rank = -1;  // in the running or the last attempt
    int last_attempt = -1;
    int master_port = 0;
    bool is_ready = false;
    bool in_attempt = false;
    bool has_ended = false;
    bool is_leaving = false;  // only this node was asked to stop
    AttemptEnd end;
    Clock::time_point last_heard;

    std::string text() const;  // "host-b (10.0.0.2)"
  };
  struct Cause {
    FailureCause what;
    bool node_lost = false;
    Clock::time_point when;
  };
  enum class Stop { None, Failure, Resize, Request };

  std::optional<Refusal> refusal_of(const NodeOffer& offer, Clock::time_point now) const;
  std::optional<Refusal> place_taken(const NodeOffer& offer, Clock::time_point now) const;
  void member_gone(Clock::time_point now);
  void gather(Clock::time_point now, bool membership_shrank);
  void start_if_complete(Clock::time_point now);
  void start();
  void begin_stop(Stop why, const Notice& notice, std::optional<NodeId> except,
                  Clock::time_point now);
  void node_failed(const Node& node, const std::string& how, Clock::time_point now);
  void note_cause(const Node& node, FailureCause cause, bool node_lost, Clock::time_point now);
  void conclude_if_ended(Clock::time_point now);
  bool can_go_on_without(NodeId id) const;
  void stop_all(NodeId id, int signal, Clock::time_point now);
  void note_end(NodeId id, const Node& node, Clock::time_point now);
  std::string diagnosis_of_all() const;
  void conclude_failure(std::optional<int64_t> progress, Clock::time_point now);
  const Cause& root_cause() const;
  bool follows_from_lost_node(const Cause& cause) const;
  void check_silence(Clock::time_point now);
  void check_gathering(Clock::time_point now);
  void check_running(Clock::time_point now);
  void check_early_exit(Clock::time_point now);
  void check_stopping(Clock::time_point now);
  std::string missing_words() const;
  std::string external_address() const;
  std::string address_of(const Node& node, const std::string& external) const;
  void send(NodeId to, Notice notice);
  bool elastic() const { return options_.min_nodes < options_.max_nodes; }
  bool enough() const { return nodes_.size() >= static_cast<size_t>(options_.min_nodes); }

  CoordinatorOptions options_;
  RestartPolicy policy_;
  Phase phase_ = Phase::Gathering;
  std::map<NodeId, Node> nodes_;  // ordered by joining
  std::vector<JobMessage> messages_;

  Clock::time_point last_tick_;
  Clock::time_point gathering_since_;
  Clock::time_point notice_at_;
  std::optional<Clock::time_point> start_at_;  // elastic: end of the last call
  std::optional<Clock::time_point> resize_at_;
  std::optional<Clock::time_point> first_end_;  // end of the first node that succeeded
  Clock::time_point stop_by_;
  bool shrank_ = false;  // a node has gone since the last attempt
  bool early_exit_told_ = false;

  Stop stop_ = Stop::None;
  bool stop_requested_ = false;
  std::vector<Cause> causes_;    // causes of this attempt, in the order of arrival
  std::vector<int> exit_codes_;  // codes of nodes that are gone but had ended well
  int over_code_ = 0;
  std::string over_words_;
  std::string over_diagnosis_;
};

}  // namespace convoy::rendezvous
