// SPDX-License-Identifier: Apache-2.0
//
// JobState: nodes that join, are refused or leave.
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/launch/rendezvous/job_state.h"

namespace convoy::rendezvous {
namespace {

constexpr int kUsage = static_cast<int>(ExitCode::Usage);

std::string nodes_text(int min_nodes, int max_nodes) {
  return min_nodes == max_nodes ? fmt::format("{}", min_nodes)
                                : fmt::format("{}:{}", min_nodes, max_nodes);
}

}  // namespace

std::string JobState::Node::text() const {
  if (offer.host_name.empty()) return origin.peer_address;
  return fmt::format("{} ({})", offer.host_name, origin.peer_address);
}

std::string JobState::name_of(NodeId id) const {
  const auto found = nodes_.find(id);
  if (found == nodes_.end()) return "a node that has left";
  const Node& node = found->second;
  const int rank = node.node_rank >= 0 ? node.node_rank : node.offer.node_rank;
  return rank >= 0 ? fmt::format("node {} {}", rank, node.text()) : node.text();
}

std::optional<Refusal> JobState::join(NodeId node, const NodeOffer& offer, const NodeOrigin& origin,
                                      Clock::time_point now) {
  if (std::optional<Refusal> refusal = refusal_of(offer, now)) return refusal;
  Node& added = nodes_[node];
  added.offer = offer;
  added.origin = origin;
  added.last_heard = now;
  if (phase_ == Phase::Running && elastic()) resize_at_ = now + options_.resize_settle;
  return std::nullopt;
}

std::optional<Refusal> JobState::refusal_of(const NodeOffer& offer, Clock::time_point now) const {
  if (phase_ == Phase::Over)  // a new job may take this port soon
    return Refusal{kPeerLost,
                   "the job there has already ended" +
                       (over_words_.empty() ? over_words_ : ": " + over_words_),
                   /*retry_later=*/true};
  if (offer.run_id != options_.run_id)
    return Refusal{kUsage, fmt::format("this node was started with the run id `{}`, the job there "
                                       "has `{}`",
                                       offer.run_id, options_.run_id)};
  if (offer.min_nodes != options_.min_nodes || offer.max_nodes != options_.max_nodes)
    return Refusal{kUsage,
                   fmt::format("this node was started with --nnodes {}, the job with --nnodes {}",
                               nodes_text(offer.min_nodes, offer.max_nodes),
                               nodes_text(options_.min_nodes, options_.max_nodes))};
  if (offer.node_rank < -1 || offer.node_rank >= options_.max_nodes)
    return Refusal{kUsage, fmt::format("this node was started with --node-rank {}, the job has "
                                       "node ranks 0 to {}",
                                       offer.node_rank, options_.max_nodes - 1)};
  if (offer.num_local_ranks < 1 || offer.num_local_ranks > 1'000'000)
    return Refusal{kUsage, fmt::format("this node offers {} ranks", offer.num_local_ranks)};
  return place_taken(offer, now);
}

std::optional<Refusal> JobState::place_taken(const NodeOffer& offer, Clock::time_point now) const {
  // A node that was cut off keeps its place until it is declared lost; its successor waits.
  const auto stale = [&](const Node& node) {
    return now - node.last_heard > 2 * options_.heartbeat + options_.heartbeat / 2;
  };
  bool any_stale = false;
  for (const auto& [id, node] : nodes_) {
    any_stale = any_stale || stale(node);
    if (offer.node_rank < 0 || node.offer.node_rank != offer.node_rank) continue;
    return Refusal{kUsage,
                   fmt::format("node rank {} is already taken by {}: two nodes were started with "
                               "the same --node-rank",
                               offer.node_rank, node.text()),
                   stale(node)};
  }
  if (nodes_.size() >= static_cast<size_t>(options_.max_nodes))
    return Refusal{kUsage,
                   fmt::format("the job already has its {} nodes, the last one is {}",
                               options_.max_nodes, nodes_.rbegin()->second.text()),
                   any_stale};
  return std::nullopt;
}

void JobState::heard(NodeId node, Clock::time_point now) {
  const auto found = nodes_.find(node);
  if (found != nodes_.end()) found->second.last_heard = now;
}

void JobState::ready(NodeId node, int last_attempt, int master_port, Clock::time_point now) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end() || found->second.last_attempt != last_attempt) return;
  found->second.is_ready = true;
  found->second.master_port = master_port;
  start_if_complete(now);
}

void JobState::leave(NodeId node, const std::string& why, Clock::time_point now) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return;
  const Node gone = std::move(found->second);
  nodes_.erase(found);
  if (!gone.in_attempt || phase_ == Phase::Over || phase_ == Phase::Gathering)
    return member_gone(now);
  shrank_ = true;
  if (gone.has_ended) {
    exit_codes_.insert(exit_codes_.end(), gone.end.exit_codes.begin(), gone.end.exit_codes.end());
  } else if (elastic() && enough()) {
    if (phase_ == Phase::Running) {
      Notice notice{.kind = Notice::Kind::StopForResize};
      notice.words = fmt::format("node {} ({}) has left the job", gone.node_rank, gone.text());
      begin_stop(Stop::Resize, notice, std::nullopt, now);
    }
  } else if (!stop_requested_) {
    node_failed(gone, "has left the job" + (why.empty() ? why : ": " + why), now);
  }
  conclude_if_ended(now);
}

void JobState::lost(NodeId node, const std::string& how, Clock::time_point now) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return;
  const Node gone = std::move(found->second);
  nodes_.erase(found);
  if (phase_ == Phase::Over) return;
  if (!gone.in_attempt || phase_ == Phase::Gathering) {
    options_.log.warning(fmt::format("a node that was waiting, {}, {}", gone.text(), how));
    return member_gone(now);
  }
  shrank_ = true;
  // All ranks of the node have ended, and the node has reported it: the attempt loses nothing.
  if (gone.has_ended)
    exit_codes_.insert(exit_codes_.end(), gone.end.exit_codes.begin(), gone.end.exit_codes.end());
  else
    node_failed(gone, how, now);
  conclude_if_ended(now);
}

// Handles the loss of a node that was not part of an attempt.
void JobState::member_gone(Clock::time_point now) {
  if (phase_ != Phase::Gathering) return;
  shrank_ = true;
  start_at_.reset();
  start_if_complete(now);
}

void JobState::node_failed(const Node& node, const std::string& how, Clock::time_point now) {
  note_cause(node, {.exit_code = kPeerLost, .sentence = how}, /*node_lost=*/true, now);
  if (phase_ != Phase::Running) return;
  Notice notice{.kind = Notice::Kind::PeerNodeLost, .exit_code = kPeerLost};
  notice.cause = causes_.back().what;
  notice.words = notice.cause.text();
  begin_stop(Stop::Failure, notice, std::nullopt, now);
}

}  // namespace convoy::rendezvous
