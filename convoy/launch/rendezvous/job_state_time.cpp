// SPDX-License-Identifier: Apache-2.0
//
// JobState: decisions that follow from the passing of time.
#include <algorithm>
#include <utility>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/milliseconds.h"
#include "convoy/launch/rendezvous/job_state.h"

namespace convoy::rendezvous {

void JobState::tick(Clock::time_point now) {
  // After a long pause this process itself was stopped or starved, so the silence of the nodes
  // proves nothing.
  const Clock::duration pause = now - last_tick_;
  if (pause > options_.silence_limit / 4)
    for (auto& [id, node] : nodes_) node.last_heard += pause;
  last_tick_ = now;
  if (phase_ != Phase::Over) check_silence(now);
  if (phase_ == Phase::Gathering) check_gathering(now);
  if (phase_ == Phase::Stopping) check_stopping(now);
  if (phase_ == Phase::Running) check_running(now);
}

void JobState::check_running(Clock::time_point now) {
  if (resize_at_ && now >= *resize_at_) {
    resize_at_.reset();
    const bool someone_waits = std::any_of(
        nodes_.begin(), nodes_.end(), [](const auto& entry) { return !entry.second.in_attempt; });
    // The job is not resized once a node has succeeded, since there is no work left to share.
    if (!someone_waits || first_end_) return;
    Notice notice{.kind = Notice::Kind::StopForResize};
    notice.words = fmt::format("the job grows to {}", counted(std::ssize(nodes_), "node"));
    return begin_stop(Stop::Resize, notice, std::nullopt, now);
  }
  if (first_end_) check_early_exit(now);
}

void JobState::check_early_exit(Clock::time_point now) {
  const auto behind = std::find_if(nodes_.begin(), nodes_.end(), [](const auto& entry) {
    return entry.second.in_attempt && !entry.second.has_ended;
  });
  if (behind == nodes_.end()) return;
  const auto limit = options_.early_exit_limit.value_or(options_.early_exit_notice);
  if (now - *first_end_ < limit) return;
  const std::string how =
      fmt::format("still runs {:.0f} s after another node's ranks have ended", seconds_of(limit));
  if (!options_.early_exit_limit) {
    if (!std::exchange(early_exit_told_, true))
      options_.log.warning(
          fmt::format("node {} {} {}", behind->second.node_rank, behind->second.text(), how));
    return;
  }
  note_cause(behind->second, {.exit_code = kPeerLost, .sentence = how}, /*node_lost=*/false, now);
  Notice notice{.kind = Notice::Kind::StopForFailure, .exit_code = kPeerLost};
  notice.cause = causes_.back().what;
  notice.words = notice.cause.text();
  begin_stop(Stop::Failure, notice, std::nullopt, now);
}

void JobState::check_silence(Clock::time_point now) {
  std::vector<NodeId> silent;
  for (const auto& [id, node] : nodes_)
    if (now - node.last_heard >= options_.silence_limit) silent.push_back(id);
  const std::string how =
      fmt::format("has been silent for {:.1f} s: its host, its launcher or the network is gone",
                  seconds_of(options_.silence_limit));
  for (const NodeId id : silent) {
    // The node may receive this even if nothing comes from it.
    send(id,
         {.kind = Notice::Kind::ShutDown,
          .exit_code = kPeerLost,
          .words = fmt::format("the coordinator has received nothing from this node for {:.1f} s",
                               seconds_of(options_.silence_limit))});
    lost(id, how, now);
  }
}

std::string JobState::missing_words() const {
  std::vector<bool> there(static_cast<size_t>(options_.max_nodes), false);
  bool all_asked = !elastic();
  for (const auto& [id, node] : nodes_) {
    if (node.offer.node_rank >= 0)
      there[static_cast<size_t>(node.offer.node_rank)] = true;
    else
      all_asked = false;
  }
  std::string words = fmt::format("{} of {} nodes are there", nodes_.size(), options_.min_nodes);
  if (!all_asked) return words;
  std::string missing;
  int listed = 0;
  for (size_t place = 0; place < there.size() && listed < 8; ++place)
    if (!there[place]) missing += fmt::format("{}{}", listed++ == 0 ? "" : ", ", place);
  return words + fmt::format("; missing: node rank {}", missing);
}

void JobState::check_gathering(Clock::time_point now) {
  const Clock::duration waited = now - gathering_since_;
  start_if_complete(now);
  if (phase_ != Phase::Gathering) return;
  if (waited >= options_.join_timeout)
    return shut_down(kPeerLost, fmt::format("the job did not start within {:.0f} s: {}",
                                            seconds_of(options_.join_timeout), missing_words()));
  if (now < notice_at_ || enough()) return;
  notice_at_ = now + options_.notice_interval;
  const std::string words =
      fmt::format("waiting for nodes for {:.0f} s (until {:.0f} s): {}", seconds_of(waited),
                  seconds_of(options_.join_timeout), missing_words());
  for (const auto& [id, node] : nodes_) messages_.push_back({id, Waiting{words}});
  if (nodes_.empty()) options_.log.warning(words);
}

void JobState::check_stopping(Clock::time_point now) {
  if (now < stop_by_) return;
  std::vector<NodeId> stuck;
  for (const auto& [id, node] : nodes_)
    if (node.in_attempt && !node.has_ended) stuck.push_back(id);
  const std::string how =
      fmt::format("did not end its ranks within {:.0f} s", seconds_of(options_.stop_limit));
  for (const NodeId id : stuck) {
    send(id, {.kind = Notice::Kind::ShutDown, .exit_code = kPeerLost, .words = "this node " + how});
    lost(id, how, now);
  }
}

}  // namespace convoy::rendezvous
