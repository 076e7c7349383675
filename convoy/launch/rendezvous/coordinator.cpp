// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/rendezvous/coordinator.h"

#include <sys/epoll.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/quiet_thread.h"
#include "convoy/launch/rendezvous/admission_listener.h"
#include "convoy/launch/rendezvous/channel.h"
#include "convoy/launch/rendezvous/job_state.h"
#include "convoy/launch/rendezvous/key_value_table.h"
#include "convoy/launch/rendezvous/messages.h"
#include "convoy/launch/rendezvous/node_clocks.h"
#include "convoy/launch/rendezvous/wake_event.h"

namespace convoy::rendezvous {
namespace {

constexpr uint64_t kListenerNumber = 0;
constexpr uint64_t kWakeNumber = 1;
constexpr uint64_t kFirstConnection = 2;
constexpr std::chrono::milliseconds kFarewell{2'000};
constexpr int kLauncherGone = static_cast<int>(ExitCode::PeerLost);

}  // namespace

class Coordinator::Service {
 public:
  Service(CoordinatorOptions options, JobToken token, BoundListener listener);
  ~Service();

  const Endpoint& endpoint() const { return endpoint_; }

 private:
  enum class Role { Unknown, Node, Heartbeat, Store };
  struct Connection {
    explicit Connection(Descriptor socket) : channel(std::move(socket)) {}
    Channel channel;
    Role role = Role::Unknown;
    int attempt = -1;  // for Role::Store
    Clock::time_point since;
    bool watches_writing = false;
    bool to_close = false;  // close it once its queued messages are sent
  };

  void run();
  void turn(Clock::time_point now);
  void admit(Descriptor socket, Clock::time_point now);
  void serve(uint64_t number, Clock::time_point now);
  void handle(uint64_t number, Connection& connection, const Frame& frame, Clock::time_point now);
  void handle_first(uint64_t number, Connection& connection, const Frame& frame,
                    Clock::time_point now);
  void handle_node(uint64_t number, const Frame& frame, Clock::time_point now);
  void handle_store(uint64_t number, Connection& connection, const Frame& frame,
                    Clock::time_point now);
  void join(uint64_t number, Connection& connection, const Frame& frame, Clock::time_point now);
  void ask_for_time(uint64_t number, Clock::time_point now);
  void deliver();
  void drop(uint64_t number, Clock::time_point now);
  void sweep(Clock::time_point now);
  void update_interest(uint64_t number, Connection& connection) const;

  CoordinatorOptions options_;
  Endpoint endpoint_;
  AdmissionListener listener_;
  Descriptor poll_;
  WakeEvent wake_;
  JobState state_;
  KeyValueTable table_;
  NodeClocks clocks_;
  std::unordered_map<uint64_t, Connection> connections_;
  std::unordered_set<uint64_t> touched_;  // connections to flush, or perhaps to close
  uint64_t next_number_ = kFirstConnection;
  int store_attempt_ = 0;

  std::mutex mutex_;
  bool stop_asked_ = false;
  std::thread thread_;
};

Coordinator::Service::Service(CoordinatorOptions options, JobToken token, BoundListener listener)
    : options_(std::move(options)),
      endpoint_(std::move(listener.endpoint)),
      listener_(
          std::move(listener.socket), std::move(token),
          {.max_unproven = options_.max_unproven, .handshake_limit = options_.handshake_limit},
          options_.log),
      poll_(::epoll_create1(EPOLL_CLOEXEC)),
      state_(options_, Clock::now()),
      table_(options_.max_store_bytes) {
  if (!poll_.open())
    throw IoError(fmt::format("epoll_create1 failed: {}", std::strerror(errno)),
                  {.hint = "raise the limit of open files (ulimit -n, LimitNOFILE)"});
  watch(poll_, listener_.descriptor(), kListenerNumber, EPOLLIN, EPOLL_CTL_ADD);
  watch(poll_, wake_.descriptor(), kWakeNumber, EPOLLIN, EPOLL_CTL_ADD);
  thread_ = quiet_thread([this] { run(); });
}

Coordinator::Service::~Service() {
  {
    const std::lock_guard lock(mutex_);
    stop_asked_ = true;
  }
  wake_.set();
  thread_.join();
}

void Coordinator::Service::run() {
  std::optional<Clock::time_point> stop_by;
  try {
    for (;;) {
      const Clock::time_point now = Clock::now();
      {
        const std::lock_guard lock(mutex_);
        if (stop_asked_ && !stop_by) {
          stop_by = now + kFarewell;
          state_.shut_down(kLauncherGone, "the launcher that hosts the rendezvous has ended");
        }
      }
      deliver();
      if (stop_by && (now >= *stop_by || state_.num_nodes() == 0)) return;
      turn(now);
    }
  } catch (const std::exception& error) {
    // Closing every connection shows all nodes that the coordinator is lost.
    options_.log.warning(fmt::format("the coordinator has failed: {}", error.what()));
    connections_.clear();
  }
}

void Coordinator::Service::turn(Clock::time_point now) {
  std::array<epoll_event, 256> events{};
  const int wait_ms = static_cast<int>(std::max<int64_t>(1, options_.heartbeat.count() / 4));
  const int count =
      ::epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()), wait_ms);
  now = Clock::now();
  for (int event = 0; event < count; ++event) {
    const uint64_t number = events[static_cast<size_t>(event)].data.u64;
    if (number == kWakeNumber) wake_.clear();
    if (number >= kFirstConnection) serve(number, now);
  }
  for (Descriptor& socket : listener_.serve(now)) admit(std::move(socket), now);
  state_.tick(now);
  table_.expire(now);
  deliver();
  sweep(now);
}

void Coordinator::Service::admit(Descriptor socket, Clock::time_point now) {
  const uint64_t number = next_number_++;
  const int descriptor = socket.get();
  Connection& connection = connections_.emplace(number, std::move(socket)).first->second;
  connection.since = now;
  watch(poll_, descriptor, number, EPOLLIN, EPOLL_CTL_ADD);
}

void Coordinator::Service::serve(uint64_t number, Clock::time_point now) {
  const auto found = connections_.find(number);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  connection.channel.receive();
  connection.channel.flush();
  touched_.insert(number);
  try {
    while (!connection.to_close) {
      const std::optional<Frame> frame = connection.channel.next();
      if (!frame) break;
      handle(number, connection, *frame, now);
    }
  } catch (const CommError& error) {
    // The peer has proven its token, so this is a bug or another version. Other connections go on.
    options_.log.warning(fmt::format("a connection from {} was closed: {}",
                                     peer_endpoint(connection.channel.descriptor()).host,
                                     error.what()));
    connection.to_close = true;
  }
}

void Coordinator::Service::handle(uint64_t number, Connection& connection, const Frame& frame,
                                  Clock::time_point now) {
  switch (connection.role) {
    case Role::Unknown:
      return handle_first(number, connection, frame, now);
    case Role::Node:
      return handle_node(number, frame, now);
    case Role::Store:
      return handle_store(number, connection, frame, now);
    case Role::Heartbeat: {
      const auto node = static_cast<NodeId>(read_number(frame.head, "session"));
      state_.heard(node, now);
      connection.channel.send({{"type", "heartbeat"}, {"known", state_.has(node)}});
      return;
    }
  }
}

void Coordinator::Service::handle_first(uint64_t number, Connection& connection, const Frame& frame,
                                        Clock::time_point now) {
  const std::string type = frame.type();
  if (type == "join") return join(number, connection, frame, now);
  if (type == "heartbeat") {
    connection.role = Role::Heartbeat;
    return handle(number, connection, frame, now);
  }
  CONVOY_CHECK(type == "store", CommError, "an unknown first message `{}`", type);
  connection.role = Role::Store;
  connection.attempt = static_cast<int>(read_number(frame.head, "attempt"));
  const std::string run_id = read_text(frame.head, "run_id");
  Json answer = {{"type", "ok"}};
  if (run_id != options_.run_id) {
    answer = {{"type", "error"},
              {"kind", "run_id"},
              {"words", fmt::format("the store belongs to the run `{}`, this rank to `{}`",
                                    options_.run_id, run_id)}};
    connection.to_close = true;
  }
  connection.channel.send(answer);
}

void Coordinator::Service::join(uint64_t number, Connection& connection, const Frame& frame,
                                Clock::time_point now) {
  const auto offer = frame.head.find("offer");
  CONVOY_CHECK(offer != frame.head.end() && offer->is_object(), CommError,
               "a join message without an offer");
  const int descriptor = connection.channel.descriptor();
  const NodeOrigin origin{peer_endpoint(descriptor).host, local_endpoint(descriptor).host};
  if (const auto refusal = state_.join(number, read_offer(*offer), origin, now)) {
    connection.channel.send({{"type", "refused"},
                             {"exit_code", refusal->exit_code},
                             {"words", refusal->words},
                             {"come_again", refusal->retry_later}});
    connection.to_close = true;
    if (!refusal->retry_later)
      options_.log.warning(
          fmt::format("the node at {} was refused: {}", origin.peer_address, refusal->words));
    return;
  }
  connection.role = Role::Node;
  connection.channel.send({{"type", "joined"}, {"session", number}});
  ask_for_time(number, now);
}

void Coordinator::Service::ask_for_time(uint64_t number, Clock::time_point now) {
  if (clocks_.asks(number, now, options_.wall_clock()))
    connections_.at(number).channel.send({{"type", "clock"}});
}

void Coordinator::Service::handle_node(uint64_t number, const Frame& frame, Clock::time_point now) {
  const std::string type = frame.type();
  const Json& head = frame.head;
  state_.heard(number, now);
  const auto object = [&](const char* key) -> const Json& {
    const auto found = head.find(key);
    CONVOY_CHECK(found != head.end() && found->is_object(), CommError, "a message lacks `{}`", key);
    return *found;
  };
  const auto attempt = [&] { return static_cast<int>(read_number(head, "attempt")); };
  if (type == "heartbeat") {
    connections_.at(number).channel.send({{"type", "heartbeat"}, {"known", state_.has(number)}});
    ask_for_time(number, now);
  } else if (type == "clock") {
    if (const auto warning = clocks_.answered(number, state_.name_of(number),
                                              read_number(head, "wall_ns"), options_.wall_clock()))
      options_.log.warning(*warning);
  } else if (type == "ready") {
    state_.ready(number, attempt(), static_cast<int>(read_number(head, "master_port")), now);
  } else if (type == "failure") {
    state_.failure(number, attempt(), read_cause(object("cause")), now);
  } else if (type == "stop_request") {
    state_.stop_request(number, static_cast<int>(read_number(head, "signal")), now);
  } else if (type == "attempt_end") {
    state_.attempt_end(number, attempt(), read_attempt_end(object("end")), now);
  } else if (type == "leave") {
    state_.leave(number, read_text(head, "words"), now);
    connections_.at(number).to_close = true;
  } else {
    throw CommError(fmt::format("an unknown message `{}`", type));
  }
}

void Coordinator::Service::handle_store(uint64_t number, Connection& connection, const Frame& frame,
                                        Clock::time_point now) {
  deliver();  // first, since the attempt may just have changed
  if (connection.attempt == store_attempt_ && state_.phase() != JobState::Phase::Over)
    return table_.handle(number, frame, now);
  connection.channel.send(
      {{"type", "error"},
       {"kind", "over"},
       {"words", fmt::format("attempt {} is not the one that runs", connection.attempt)}});
}

void Coordinator::Service::deliver() {
  for (JobMessage& message : state_.take_messages()) {
    const auto found = connections_.find(message.to);
    if (found == connections_.end()) continue;
    Json head;
    if (const auto* start = std::get_if<Start>(&message.what))
      head = {{"type", "assigned"}, {"assignment", to_json(start->assignment())}};
    else if (const auto* notice = std::get_if<Notice>(&message.what))
      head = {{"type", "notice"}, {"notice", to_json(*notice)}};
    else
      head = {{"type", "waiting"}, {"words", std::get<Waiting>(message.what).words}};
    found->second.channel.send(head);
    // This is the last message to a node that is no longer a member.
    if (!state_.has(message.to)) found->second.to_close = true;
    touched_.insert(message.to);
  }
  const bool over = state_.phase() == JobState::Phase::Over;
  if (state_.attempt() != store_attempt_ || over) {
    table_.clear(over ? "the job has ended" : "the attempt is over");
    store_attempt_ = state_.attempt();
  }
  for (KeyValueTable::Answer& answer : table_.take_answers()) {
    const auto found = connections_.find(answer.to);
    if (found == connections_.end()) continue;
    found->second.channel.send(answer.head, std::move(answer.payload));
    touched_.insert(answer.to);
  }
}

void Coordinator::Service::update_interest(uint64_t number, Connection& connection) const {
  const bool wants_writing = connection.channel.has_unsent();
  if (wants_writing == connection.watches_writing) return;
  watch(poll_, connection.channel.descriptor(), number,
        wants_writing ? uint32_t{EPOLLIN | EPOLLOUT} : uint32_t{EPOLLIN}, EPOLL_CTL_MOD);
  connection.watches_writing = wants_writing;
}

void Coordinator::Service::sweep(Clock::time_point now) {
  for (const uint64_t number : std::exchange(touched_, {})) {
    const auto found = connections_.find(number);
    if (found == connections_.end()) continue;
    Connection& connection = found->second;
    if (connection.channel.closed() || (connection.to_close && !connection.channel.has_unsent()))
      drop(number, now);
    else
      update_interest(number, connection);
  }
}

void Coordinator::Service::drop(uint64_t number, Clock::time_point now) {
  connections_.erase(number);
  table_.forget(number);
  clocks_.forget(number);
  state_.lost(number, "has ended without a word: its launcher or its host is gone", now);
  deliver();
}

Coordinator::Coordinator(CoordinatorOptions options, JobToken token, BoundListener listener)
    : service_(
          std::make_unique<Service>(std::move(options), std::move(token), std::move(listener))) {}

Coordinator::~Coordinator() = default;

const Endpoint& Coordinator::endpoint() const { return service_->endpoint(); }

}  // namespace convoy::rendezvous
