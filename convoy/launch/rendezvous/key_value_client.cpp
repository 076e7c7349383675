// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/rendezvous/key_value_client.h"

#include <poll.h>

#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/launch/rendezvous/client_connection.h"
#include "convoy/launch/rendezvous/messages.h"

namespace convoy::rendezvous {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kTryLimit{5};
constexpr std::chrono::milliseconds kRetryPause{100};
constexpr std::chrono::seconds kAnswerLimit{60};  // for requests that need no wait

int ms_until(Clock::time_point time) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(time - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 60'000));
}

Channel connect_to(const Endpoint& store, const JobToken& token, Clock::time_point deadline) {
  std::string last = "no time to connect";
  while (Clock::now() < deadline) {
    const Resolved resolved = resolve_host(store.host, store.port);
    if (resolved.addresses.empty()) last = resolved.problem;
    for (const SocketAddress& address : resolved.addresses) {
      ClientConnection connection(address, token, std::min(deadline, Clock::now() + kTryLimit));
      while (connection.advance(Clock::now()) < ClientConnection::State::Proven) {
        pollfd watched{connection.descriptor(), connection.events(), 0};
        ::poll(&watched, 1, ms_until(connection.deadline()));
      }
      const ClientConnection::Problem problem = connection.problem();
      if (problem == ClientConnection::Problem::None) return connection.take_channel();
      if (problem == ClientConnection::Problem::WrongToken ||
          problem == ClientConnection::Problem::WrongServer)
        throw ConfigError(
            fmt::format("the key-value store at {}: {}", store.text(), connection.words()),
            {.key = "CONVOY_JOB_TOKEN", .hint = "give every node the same token"});
      last = connection.words();
    }
    std::this_thread::sleep_for(kRetryPause);
  }
  throw CommError(
      fmt::format("the key-value store at {} cannot be reached: {}", store.text(), last),
      {.hint = "the launcher of the master node has ended, or the network between is gone"});
}

}  // namespace

class KeyValueClient::Connection {
 public:
  Connection(KeyValueOptions options, const JobToken& token)
      : options_(std::move(options)),
        channel_(connect_to(options_.store, token, Clock::now() + options_.connect_timeout)) {
    ask({{"type", "store"},
         {"run_id", options_.run_id},
         {"attempt", options_.attempt},
         {"rank", options_.rank}},
        {}, {}, kAnswerLimit);
  }

  // Sends a request, whose payload is the keys and then `rest`, and returns the answer.
  Frame ask(Json head, const std::vector<std::string>& keys, std::string_view rest,
            std::chrono::milliseconds limit) {
    std::string payload;
    Json lengths = Json::array();
    for (const std::string& key : keys) {
      CONVOY_CHECK(!key.empty() && key.size() <= kMaxKeyBytes, CommError,
                   "a key of the store must have 1 to {} bytes, found {}", kMaxKeyBytes,
                   key.size());
      lengths.push_back(key.size());
      payload += key;
    }
    payload += rest;
    CONVOY_CHECK(rest.size() <= kMaxValueBytes && payload.size() <= kMaxPayloadBytes, CommError,
                 "a value of the store may have {} bytes at most, found {} and {} bytes of keys",
                 kMaxValueBytes, rest.size(), payload.size() - rest.size());
    head["key_bytes"] = std::move(lengths);
    const std::lock_guard lock(mutex_);
    check_usable();
    channel_.send(head, std::make_shared<const std::string>(std::move(payload)));
    return answer(keys.empty() ? std::string() : keys.front(), limit);
  }

 private:
  void check_usable() const {
    if (lost_)
      throw CommError(
          fmt::format("the key-value store at {} does not answer", options_.store.text()),
          {.hint = "the launcher of the master node hangs or was cut off: look at its log"});
  }

  Frame answer(const std::string& key, std::chrono::milliseconds limit) {
    const Clock::time_point deadline = Clock::now() + limit;
    for (;;) {
      if (std::optional<Frame> frame = channel_.next()) return checked(std::move(*frame), key);
      if (channel_.closed())
        throw CommError(
            fmt::format("the key-value store at {} closed the connection", options_.store.text()),
            {.hint = "the launcher of the master node has ended: look at its log"});
      // A late answer would be taken for the answer to the next question.
      lost_ = Clock::now() >= deadline;
      check_usable();
      pollfd watched{channel_.descriptor(),
                     static_cast<short>(channel_.has_unsent() ? POLLIN | POLLOUT : POLLIN), 0};
      ::poll(&watched, 1, ms_until(deadline));
      channel_.flush();
      channel_.receive();
    }
  }

  Frame checked(Frame frame, const std::string& key) const {
    if (frame.type() == "ok") return frame;
    const std::string kind = read_text(frame.head, "kind");
    const std::string words = read_text(frame.head, "words");
    if (kind == "run_id")
      throw ConfigError(
          words, {.key = "TORCHELASTIC_RUN_ID",
                  .hint = "give all nodes the same --rdzv-id, or unset TORCHELASTIC_RUN_ID"});
    if (kind == "timeout")
      throw CommError(fmt::format("the key `{}` of the key-value store was not set in time", key),
                      {.hint = "a rank that should set it has ended or hangs"});
    throw CommError(fmt::format("the key-value store at {}: {}", options_.store.text(), words),
                    {.hint = "look at the log of the launcher of the master node"});
  }

  KeyValueOptions options_;
  std::mutex mutex_;
  Channel channel_;
  bool lost_ = false;
};

KeyValueClient::KeyValueClient(KeyValueOptions options, const JobToken& token)
    : connection_(std::make_unique<Connection>(std::move(options), token)) {}

KeyValueClient::~KeyValueClient() = default;

void KeyValueClient::set(const std::string& key, std::string_view value) {
  connection_->ask({{"type", "set"}}, {key}, value, kAnswerLimit);
}

std::string KeyValueClient::get(const std::string& key, std::chrono::milliseconds timeout) {
  return connection_
      ->ask({{"type", "get"}, {"timeout_ms", timeout.count()}}, {key}, {}, timeout + kAnswerLimit)
      .payload;
}

void KeyValueClient::wait(const std::vector<std::string>& keys, std::chrono::milliseconds timeout) {
  connection_->ask({{"type", "wait"}, {"timeout_ms", timeout.count()}}, keys, {},
                   timeout + kAnswerLimit);
}

bool KeyValueClient::check(const std::vector<std::string>& keys) {
  return read_number(connection_->ask({{"type", "check"}}, keys, {}, kAnswerLimit).head,
                     "number") != 0;
}

int64_t KeyValueClient::add(const std::string& key, int64_t amount) {
  return read_number(
      connection_->ask({{"type", "add"}, {"amount", amount}}, {key}, {}, kAnswerLimit).head,
      "number");
}

std::string KeyValueClient::compare_set(const std::string& key, std::string_view expected,
                                        std::string_view desired) {
  return connection_
      ->ask({{"type", "compare_set"}, {"expected_bytes", expected.size()}}, {key},
            std::string(expected) + std::string(desired), kAnswerLimit)
      .payload;
}

bool KeyValueClient::remove(const std::string& key) {
  return read_number(connection_->ask({{"type", "remove"}}, {key}, {}, kAnswerLimit).head,
                     "number") != 0;
}

int64_t KeyValueClient::num_keys() {
  return read_number(connection_->ask({{"type", "num_keys"}}, {}, {}, kAnswerLimit).head, "number");
}

}  // namespace convoy::rendezvous
