// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/rendezvous/node_link.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/core/base/loopback.h"
#include "convoy/core/base/quiet_thread.h"
#include "convoy/launch/rendezvous/backup_connection.h"
#include "convoy/launch/rendezvous/coordinator_search.h"
#include "convoy/launch/rendezvous/messages.h"
#include "convoy/launch/rendezvous/wake_event.h"

namespace convoy::rendezvous {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kNodeFarewell{1'000};

}  // namespace

// Only the thread uses the members that the mutex does not protect.
class NodeLink::Worker {
 public:
  Worker(NodeLinkOptions options, JobToken token);
  ~Worker();

  JoinOutcome wait_for_assignment(int master_port, int stop_descriptor);
  int descriptor() const { return notice_event_.descriptor(); }
  std::optional<Notice> next();
  void report(Json message);  // "attempt" is added
  void leave();

 private:
  void run();
  void search(Clock::time_point now);
  void serve(Clock::time_point now);
  void joined(Channel channel, Clock::time_point now);
  void handle(const Frame& frame, Clock::time_point now);
  void handle_refusal(const Json& head, Clock::time_point now);
  void handle_assignment(const Json& head);
  void send_queued();
  void send_heartbeat(Clock::time_point now);
  void use_second_path(Clock::time_point now);
  void check_silence(Clock::time_point now);
  void lose(const std::string& how);
  void end_with(Notice notice);
  void push(Notice notice);
  bool say_farewell(Clock::time_point now);
  void wait(Clock::time_point now);
  std::string place() const { return options_.coordinator.text(); }

  const NodeLinkOptions options_;
  const JobToken token_;
  CoordinatorSearch search_;
  std::optional<Channel> channel_;
  bool is_member_ = false;
  Clock::time_point last_heard_;  // on either connection
  Clock::time_point first_channel_heard_;
  Clock::time_point last_turn_;
  Clock::time_point next_beat_;
  std::optional<BackupConnection> backup_connection_;
  std::optional<Clock::time_point> leave_by_;
  bool leave_sent_ = false;

  WakeEvent wake_;          // for the thread
  WakeEvent notice_event_;  // for the poll loop
  WakeEvent turn_event_;    // for wait_for_assignment
  mutable std::mutex mutex_;
  std::condition_variable done_;
  std::vector<Json> to_send_;
  std::deque<Notice> notices_;
  std::optional<Notice> end_;
  std::optional<Assignment> assignment_;
  int attempt_ = -1;
  bool was_member_ = false;
  bool leave_asked_ = false;
  bool is_done_ = false;
  std::thread thread_;
};

NodeLink::Worker::Worker(NodeLinkOptions options, JobToken token)
    : options_(std::move(options)),
      token_(std::move(token)),
      search_(options_, token_, Clock::now()),
      last_turn_(Clock::now()) {
  thread_ = quiet_thread([this] { run(); });
}

NodeLink::Worker::~Worker() {
  leave();
  thread_.join();
}

// ---- called by the launcher

JoinOutcome NodeLink::Worker::wait_for_assignment(int master_port, int stop_descriptor) {
  {
    const std::lock_guard lock(mutex_);
    notices_.clear();
    if (end_)
      notices_.push_back(*end_);
    else
      notice_event_.clear();
    // The coordinator ignores a second `ready` for the same attempt.
    to_send_.push_back({{"type", "ready"}, {"master_port", master_port}, {"attempt", attempt_}});
  }
  wake_.set();
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      turn_event_.clear();
      if (end_) {
        if (was_member_) return {.kind = JoinOutcome::Kind::Ended, .assignment = {}, .end = *end_};
        if (end_->exit_code == static_cast<int>(ExitCode::Usage)) throw ConfigError(end_->words);
        throw CommError(end_->words);
      }
      if (assignment_) {
        JoinOutcome outcome{
            .kind = JoinOutcome::Kind::Assigned, .assignment = *assignment_, .end = {}};
        assignment_.reset();
        return outcome;
      }
    }
    std::array<pollfd, 2> watched = {pollfd{turn_event_.descriptor(), POLLIN, 0},
                                     pollfd{stop_descriptor, POLLIN, 0}};
    ::poll(watched.data(), watched.size(), -1);
    if (watched[1].revents != 0) return {};
  }
}

std::optional<Notice> NodeLink::Worker::next() {
  const std::lock_guard lock(mutex_);
  if (notices_.empty()) return std::nullopt;
  Notice notice = std::move(notices_.front());
  notices_.pop_front();
  if (notices_.empty()) notice_event_.clear();
  return notice;
}

void NodeLink::Worker::report(Json message) {
  {
    const std::lock_guard lock(mutex_);
    message["attempt"] = attempt_;
    to_send_.push_back(std::move(message));
  }
  wake_.set();
}

void NodeLink::Worker::leave() {
  std::unique_lock lock(mutex_);
  leave_asked_ = true;
  wake_.set();
  done_.wait_for(lock, kNodeFarewell + std::chrono::milliseconds(500), [&] { return is_done_; });
}

// ---- the thread

void NodeLink::Worker::run() {
  try {
    for (;;) {
      const Clock::time_point now = Clock::now();
      if (channel_)
        serve(now);
      else
        search(now);
      if (say_farewell(now)) break;
      wait(now);
    }
  } catch (const std::exception& error) {
    end_with({.kind = Notice::Kind::CoordinatorLost,
              .exit_code = kPeerLost,
              .words = fmt::format("the link to the master at {} has failed: {}", place(),
                                   error.what())});
  }
  channel_.reset();
  backup_connection_.reset();
  const std::lock_guard lock(mutex_);
  is_done_ = true;
  done_.notify_all();
}

// True when the thread may end.
bool NodeLink::Worker::say_farewell(Clock::time_point now) {
  std::string why;
  {
    const std::lock_guard lock(mutex_);
    if (!leave_asked_ && !end_) return false;
    if (end_) why = end_->words;
  }
  if (!channel_ || !is_member_ || channel_->closed()) return true;
  if (!leave_sent_) {
    channel_->send({{"type", "leave"}, {"words", why}});
    leave_sent_ = true;
    leave_by_ = now + kNodeFarewell;
  }
  return !channel_->has_unsent() || now >= *leave_by_;
}

void NodeLink::Worker::wait(Clock::time_point now) {
  std::array<pollfd, 4> watched = {pollfd{wake_.descriptor(), POLLIN, 0}, pollfd{-1, 0, 0},
                                   pollfd{-1, 0, 0}, pollfd{-1, 0, 0}};
  Clock::time_point until = now + options_.heartbeat;
  if (channel_) {
    watched[1] = {channel_->descriptor(),
                  static_cast<short>(channel_->has_unsent() ? POLLIN | POLLOUT : POLLIN), 0};
    until = std::min({next_beat_, last_heard_ + options_.silence_limit, until});
    if (leave_by_) until = std::min(until, *leave_by_);
  } else {
    watched[1] = {search_.descriptor(), search_.events(), 0};
    until = std::min(until, search_.wake_at());
  }
  if (backup_connection_) std::ranges::copy(backup_connection_->watched(), watched.begin() + 2);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now).count();
  ::poll(watched.data(), watched.size(), static_cast<int>(std::clamp<int64_t>(left, 0, 60'000)));
  if (watched[0].revents != 0) wake_.clear();
}

void NodeLink::Worker::search(Clock::time_point now) {
  if (std::optional<Channel> channel = search_.advance(now)) {
    joined(std::move(*channel), now);
  } else if (search_.outcome()) {
    end_with(*search_.outcome());
  }
}

void NodeLink::Worker::joined(Channel channel, Clock::time_point now) {
  NodeOffer offer = options_.offer;
  const std::string here = local_endpoint(channel.descriptor()).host;
  if (offer.address.empty()) {
    offer.address = here;
  } else if (is_loopback_address(offer.address) && !is_loopback_address(here)) {
    return end_with({.kind = Notice::Kind::Refused,
                     .exit_code = static_cast<int>(ExitCode::Usage),
                     .words = fmt::format("--local-addr {} is a loopback address: no other node "
                                          "can reach it (the master is reached from {})",
                                          offer.address, here)});
  }
  channel_ = std::move(channel);
  last_heard_ = first_channel_heard_ = last_turn_ = now;
  next_beat_ = now + options_.heartbeat;
  channel_->send({{"type", "join"}, {"offer", to_json(offer)}});
}

void NodeLink::Worker::serve(Clock::time_point now) {
  // After a long pause this process itself was stopped or starved, so the silence proves nothing
  // about the coordinator.
  const Clock::duration pause = now - last_turn_;
  if (pause > options_.silence_limit / 4) last_heard_ += pause;
  last_turn_ = now;
  channel_->receive();
  channel_->flush();
  while (channel_) {
    const std::optional<Frame> frame = channel_->next();
    if (!frame) break;
    last_heard_ = first_channel_heard_ = now;
    handle(*frame, now);
  }
  if (!channel_) return;
  if (channel_->closed()) return lose("has ended: its launcher or its host is gone");
  send_queued();
  send_heartbeat(now);
  use_second_path(now);
  check_silence(now);
}

void NodeLink::Worker::handle(const Frame& frame, Clock::time_point now) {
  const std::string type = frame.type();
  const Json& head = frame.head;
  if (type == "joined") {
    is_member_ = true;
    if (const std::optional<SocketAddress> peer = peer_address(channel_->descriptor()))
      backup_connection_.emplace(*peer, token_, static_cast<uint64_t>(read_number(head, "session")),
                                 options_.heartbeat);
    const std::lock_guard lock(mutex_);
    was_member_ = true;
  } else if (type == "refused") {
    handle_refusal(head, now);
  } else if (type == "assigned") {
    handle_assignment(head);
  } else if (type == "notice") {
    const auto found = head.find("notice");
    CONVOY_CHECK(found != head.end() && found->is_object(), CommError, "a notice without content");
    Notice notice = read_notice(*found);
    if (notice.ends_job())
      end_with(std::move(notice));
    else
      push(std::move(notice));
  } else if (type == "clock") {
    channel_->send({{"type", "clock"}, {"wall_ns", options_.wall_clock()}});
  } else if (type == "waiting") {
    options_.log.info(read_text(head, "words"));
  }
}

void NodeLink::Worker::handle_refusal(const Json& head, Clock::time_point now) {
  const Notice refusal{.kind = Notice::Kind::Refused,
                       .exit_code = static_cast<int>(read_number(head, "exit_code")),
                       .words = fmt::format("the master at {} refused this node: {}", place(),
                                            read_text(head, "words"))};
  channel_.reset();
  const auto again = head.find("come_again");
  if (again == head.end() || *again != true) return end_with(refusal);
  search_.retry_later(refusal, now);
}

void NodeLink::Worker::handle_assignment(const Json& head) {
  const auto found = head.find("assignment");
  CONVOY_CHECK(found != head.end() && found->is_object(), CommError,
               "an assignment without content");
  Assignment assignment = read_assignment(*found);
  assignment.store_address = peer_endpoint(channel_->descriptor()).text();
  {
    const std::lock_guard lock(mutex_);
    attempt_ = assignment.attempt;
    assignment_ = std::move(assignment);
    notices_.clear();
    notice_event_.clear();
  }
  turn_event_.set();
}

void NodeLink::Worker::send_queued() {
  if (!is_member_) return;
  std::vector<Json> messages;
  {
    const std::lock_guard lock(mutex_);
    messages = std::exchange(to_send_, {});
  }
  for (const Json& message : messages) channel_->send(message);
}

void NodeLink::Worker::send_heartbeat(Clock::time_point now) {
  if (now < next_beat_) return;
  next_beat_ = now + options_.heartbeat;
  if (is_member_) channel_->send({{"type", "heartbeat"}});
}

void NodeLink::Worker::use_second_path(Clock::time_point now) {
  if (!backup_connection_) return;
  if (now - first_channel_heard_ < 2 * options_.heartbeat) return backup_connection_->close();
  backup_connection_->advance(now);
  last_heard_ = std::max(last_heard_, backup_connection_->last_heard().value_or(last_heard_));
  if (backup_connection_->is_unknown())
    lose("took this node for lost while the network between was cut");
}

void NodeLink::Worker::check_silence(Clock::time_point now) {
  if (now - last_heard_ < options_.silence_limit) return;
  lose(fmt::format(
      "has been silent for {:.1f} s: its host, its launcher or the network between is gone",
      std::chrono::duration<double>(options_.silence_limit).count()));
}

void NodeLink::Worker::lose(const std::string& how) {
  end_with({.kind = Notice::Kind::CoordinatorLost,
            .exit_code = kPeerLost,
            .words = fmt::format("the master at {} {}", place(), how)});
}

void NodeLink::Worker::end_with(Notice notice) {
  {
    const std::lock_guard lock(mutex_);
    if (end_) return;
    end_ = notice;
  }
  push(std::move(notice));
  turn_event_.set();
}

void NodeLink::Worker::push(Notice notice) {
  const std::lock_guard lock(mutex_);
  notices_.push_back(std::move(notice));
  notice_event_.set();
}

// ---- the public face

NodeLink::NodeLink(NodeLinkOptions options, JobToken token)
    : worker_(std::make_unique<Worker>(std::move(options), std::move(token))) {}

NodeLink::~NodeLink() = default;

JoinOutcome NodeLink::wait_for_assignment(int master_port, int stop_descriptor) {
  return worker_->wait_for_assignment(master_port, stop_descriptor);
}

int NodeLink::descriptor() const { return worker_->descriptor(); }

std::optional<Notice> NodeLink::next() { return worker_->next(); }

void NodeLink::report_failure(FailureCause cause) {
  worker_->report({{"type", "failure"}, {"cause", to_json(cause)}});
}

void NodeLink::report_stop_request(int signal) {
  worker_->report({{"type", "stop_request"}, {"signal", signal}});
}

void NodeLink::report_attempt_end(AttemptEnd end) {
  worker_->report({{"type", "attempt_end"}, {"end", to_json(end)}});
}

void NodeLink::leave() { worker_->leave(); }

}  // namespace convoy::rendezvous
