// SPDX-License-Identifier: Apache-2.0
//
// Attempts: their start, stop and result. Members of the job: job_state_nodes.cpp; silence and
// deadlines: job_state_time.cpp.
#include "convoy/launch/rendezvous/job_state.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/loopback.h"
#include "convoy/launch/rendezvous/membership.h"

namespace convoy::rendezvous {
JobState::JobState(CoordinatorOptions options, Clock::time_point now)
    : options_(std::move(options)), policy_(options_.restarts), last_tick_(now) {
  if (options_.min_nodes < 1 || options_.min_nodes > options_.max_nodes)
    throw ConfigError(fmt::format("--nnodes must be N or MIN:MAX with 1 <= MIN <= MAX, found {}:{}",
                                  options_.min_nodes, options_.max_nodes),
                      {.hint = "such as --nnodes 2, or --nnodes 1:4"});
  gather(now, /*membership_shrank=*/true);
}

void JobState::gather(Clock::time_point now, bool membership_shrank) {
  phase_ = Phase::Gathering;
  gathering_since_ = now;
  notice_at_ = now + options_.notice_interval;
  start_at_.reset();
  resize_at_.reset();
  first_end_.reset();
  early_exit_told_ = false;
  shrank_ = membership_shrank;
  stop_ = Stop::None;
  causes_.clear();
  exit_codes_.clear();
  for (auto& [id, node] : nodes_) {
    node.in_attempt = false;
    node.has_ended = false;
  }
  start_if_complete(now);
}

void JobState::start_if_complete(Clock::time_point now) {
  if (phase_ != Phase::Gathering || !enough()) {
    if (phase_ == Phase::Gathering) start_at_.reset();
    return;
  }
  const bool full = nodes_.size() == static_cast<size_t>(options_.max_nodes);
  // There is no last call when every member of the last attempt is still there.
  if (!start_at_) start_at_ = shrank_ ? now + options_.last_call_timeout : now;
  if (!full && now < *start_at_) return;
  for (const auto& [id, node] : nodes_)
    if (!node.is_ready) return;
  start();
}

std::string JobState::external_address() const {
  for (const auto& [id, node] : nodes_)
    if (!is_loopback_address(node.origin.peer_address)) return node.origin.address_here;
  return {};
}

std::string JobState::address_of(const Node& node, const std::string& external) const {
  // A node that connects by loopback is on this host, so other nodes reach it at this host's
  // address.
  if (!external.empty() && is_loopback_address(node.offer.address) &&
      is_loopback_address(node.origin.peer_address))
    return external;
  return node.offer.address;
}

void JobState::start() {
  std::vector<JoinedNode> seats;
  for (const auto& [id, node] : nodes_)
    seats.push_back({.asked_rank = node.offer.node_rank,
                     .previous_rank = node.node_rank,
                     .hosts_coordinator = node.offer.hosts_coordinator,
                     .num_local_ranks = node.offer.num_local_ranks});
  const std::vector<int> ranks = node_ranks(seats, options_.max_nodes);
  const std::string external = external_address();
  Assignment common;
  common.attempt = policy_.attempt();
  common.failures = policy_.failures();
  common.resizes = policy_.resizes();
  common.restarts = policy_.restarts();
  common.ranks_per_node.resize(nodes_.size());
  size_t seat = 0;
  for (auto& [id, node] : nodes_) {
    node.node_rank = ranks[seat++];
    const size_t place = static_cast<size_t>(node.node_rank);
    common.ranks_per_node[place] = node.offer.num_local_ranks;
    if (node.node_rank != 0) continue;
    common.master_address = address_of(node, external);
    common.master_port = node.master_port;
  }
  const std::vector<int> first = first_ranks(common.ranks_per_node);
  common.world_size = first.back();
  const auto shared = std::make_shared<const Assignment>(std::move(common));
  for (auto& [id, node] : nodes_) {
    messages_.push_back({id, Start{.common = shared,
                                   .node_rank = node.node_rank,
                                   .first_rank = first[static_cast<size_t>(node.node_rank)],
                                   .own_address = address_of(node, external)}});
    node.in_attempt = true;
    node.last_attempt = policy_.attempt();
    node.is_ready = false;
  }
  phase_ = Phase::Running;
}

void JobState::note_cause(const Node& node, FailureCause cause, bool node_lost,
                          Clock::time_point now) {
  cause.node_rank = node.node_rank;
  cause.host = node.text();
  causes_.push_back({std::move(cause), node_lost, now});
}

void JobState::begin_stop(Stop why, const Notice& notice, std::optional<NodeId> except,
                          Clock::time_point now) {
  phase_ = Phase::Stopping;
  stop_ = why;
  stop_by_ = now + options_.stop_limit;
  for (const auto& [id, node] : nodes_)
    if (node.in_attempt && !node.has_ended && id != except) send(id, notice);
}

void JobState::failure(NodeId id, int attempt, FailureCause cause, Clock::time_point now) {
  const auto found = nodes_.find(id);
  if (found == nodes_.end() || !found->second.in_attempt || attempt != policy_.attempt()) return;
  if (phase_ != Phase::Running && phase_ != Phase::Stopping) return;
  note_cause(found->second, std::move(cause), /*node_lost=*/false, now);
  if (phase_ != Phase::Running) return;
  Notice notice{.kind = Notice::Kind::StopForFailure};
  notice.cause = causes_.back().what;
  notice.exit_code = notice.cause.exit_code;
  notice.words = notice.cause.text();
  begin_stop(Stop::Failure, notice, id, now);
}

// True when enough nodes stay. Without the node that hosts the coordinator no node can join.
bool JobState::can_go_on_without(NodeId id) const {
  const auto staying = std::count_if(nodes_.begin(), nodes_.end(), [&](const auto& entry) {
    return entry.first != id && !entry.second.is_leaving;
  });
  return elastic() && !stop_requested_ && !nodes_.at(id).offer.hosts_coordinator &&
         staying >= options_.min_nodes;
}

void JobState::stop_request(NodeId id, int signal, Clock::time_point now) {
  if (phase_ == Phase::Over || !has(id)) return;
  if (!can_go_on_without(id)) return stop_all(id, signal, now);
  Node& node = nodes_.at(id);
  node.is_leaving = true;
  shrank_ = true;
  if (phase_ != Phase::Running) return;
  Notice notice{.kind = Notice::Kind::StopForResize};
  notice.signal = signal;
  notice.words =
      fmt::format("node {} ({}) was asked to stop and leaves the job", node.node_rank, node.text());
  options_.log.info(notice.words);
  begin_stop(Stop::Resize, notice, id, now);
}

void JobState::stop_all(NodeId id, int signal, Clock::time_point now) {
  stop_requested_ = true;
  const Node& node = nodes_.at(id);
  const std::string words = fmt::format("{} was asked to stop", node.text());
  if (phase_ == Phase::Gathering) return shut_down(kStopped, words);
  if (phase_ != Phase::Running) return;
  Notice notice{.kind = Notice::Kind::StopRequested, .exit_code = kStopped, .words = words};
  notice.signal = signal;
  begin_stop(Stop::Request, notice, id, now);
}

void JobState::attempt_end(NodeId id, int attempt, AttemptEnd end, Clock::time_point now) {
  const auto found = nodes_.find(id);
  if (found == nodes_.end() || attempt != policy_.attempt()) return;
  Node& node = found->second;
  if (!node.in_attempt || node.has_ended) return;
  node.end = std::move(end);
  node.has_ended = true;
  note_end(id, node, now);
  conclude_if_ended(now);
}

void JobState::note_end(NodeId id, const Node& node, Clock::time_point now) {
  const std::vector<int>& codes = node.end.exit_codes;
  const auto has_code = [&](int code) {
    return std::find(codes.begin(), codes.end(), code) != codes.end();
  };
  if (node.end.cause && node.end.cause->exit_code != 0)
    return failure(id, policy_.attempt(), *node.end.cause, now);
  if (phase_ != Phase::Running) return;
  const auto other = std::find_if(codes.begin(), codes.end(),
                                  [](int code) { return code != 0 && code != kStopped; });
  if (other != codes.end()) {
    failure(id, policy_.attempt(), {.exit_code = *other}, now);
  } else if (has_code(kStopped)) {
    stop_all(id, /*signal=*/0, now);
  } else if (!first_end_) {
    first_end_ = now;
  }
}

// A program that has no exit code for a lost peer ends with 1 or aborts when it loses one.
bool JobState::follows_from_lost_node(const Cause& cause) const {
  constexpr std::chrono::seconds kAtOnce{2};
  if (cause.what.exit_code != 1 && cause.what.exit_code != 128 + SIGABRT) return false;
  return std::any_of(causes_.begin(), causes_.end(), [&](const Cause& other) {
    return other.node_lost && other.what.node_rank != cause.what.node_rank &&
           cause.when >= other.when - kAtOnce;
  });
}

const JobState::Cause& JobState::root_cause() const {
  // A rank's own error takes precedence over the loss of a node, and the loss of a node over a rank
  // that lost its peer. Among causes of one kind the first counts. Both ends of a broken connection
  // fail at once, whichever caused it.
  const auto order = [this](const Cause& cause) {
    if (cause.node_lost) return 1;
    return cause.what.exit_code == kPeerLost || follows_from_lost_node(cause) ? 2 : 0;
  };
  return *std::min_element(
      causes_.begin(), causes_.end(),
      [&](const Cause& left, const Cause& right) { return order(left) < order(right); });
}

void JobState::conclude_if_ended(Clock::time_point now) {
  if (phase_ != Phase::Running && phase_ != Phase::Stopping) return;
  std::optional<int64_t> progress;
  std::vector<int> codes = exit_codes_;
  for (const auto& [id, node] : nodes_) {
    if (!node.in_attempt) continue;
    if (!node.has_ended) return;
    codes.insert(codes.end(), node.end.exit_codes.begin(), node.end.exit_codes.end());
    if (node.end.progress) progress = std::max(progress.value_or(0), *node.end.progress);
  }
  if (!causes_.empty()) return conclude_failure(progress, now);
  if (stop_ == Stop::Resize && !stop_requested_) {
    policy_.record_resize(progress);
    return gather(now, shrank_);
  }
  const auto other = std::find_if(codes.begin(), codes.end(), [](int code) { return code != 0; });
  if (other == codes.end()) return shut_down(0, {});
  const bool saved = std::find(codes.begin(), codes.end(), kStopped) != codes.end();
  shut_down(saved ? kStopped : *other, "the job was stopped on request");
}

std::string JobState::diagnosis_of_all() const {
  std::vector<telemetry::RankFlight> flights;
  size_t num_nodes = 0;
  for (const auto& [id, node] : nodes_) {
    if (!node.in_attempt || node.end.flights.empty()) continue;
    ++num_nodes;
    flights.insert(flights.end(), node.end.flights.begin(), node.end.flights.end());
  }
  // With one node, its launcher has reported everything already.
  return num_nodes < 2 || !options_.judge ? std::string() : options_.judge(flights);
}

void JobState::conclude_failure(std::optional<int64_t> progress, Clock::time_point now) {
  const Cause cause = root_cause();
  over_diagnosis_ = diagnosis_of_all();
  if (stop_requested_) return shut_down(cause.what.exit_code, cause.what.text());
  const bool resize = cause.node_lost && elastic() && enough();
  const RestartDecision decision = resize ? policy_.record_lost_node(progress)
                                          : policy_.record_failure(cause.what.exit_code, progress);
  if (!decision.restart()) {
    const std::string why =
        options_.restarts.max_restarts > 0 ? fmt::format("; {}", decision.reason) : std::string();
    return shut_down(decision.exit_code, cause.what.text() + why);
  }
  if (!over_diagnosis_.empty()) options_.log.warning(over_diagnosis_);
  options_.log.warning(fmt::format("{}; {}", cause.what.text(), decision.reason));
  gather(now, shrank_);
}

void JobState::shut_down(int exit_code, const std::string& words) {
  if (phase_ == Phase::Over) return;
  phase_ = Phase::Over;
  over_code_ = exit_code;
  over_words_ = words;
  for (const auto& [id, node] : nodes_)
    send(id, {.kind = Notice::Kind::ShutDown,
              .exit_code = exit_code,
              .words = words,
              .diagnosis = over_diagnosis_});
}

Assignment Start::assignment() const {
  Assignment assignment = *common;
  assignment.node_rank = node_rank;
  assignment.first_rank = first_rank;
  assignment.own_address = own_address;
  return assignment;
}

void JobState::send(NodeId to, Notice notice) { messages_.push_back({to, std::move(notice)}); }

std::vector<JobMessage> JobState::take_messages() { return std::exchange(messages_, {}); }

}  // namespace convoy::rendezvous
