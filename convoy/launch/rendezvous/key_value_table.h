// SPDX-License-Identifier: Apache-2.0
//
// The keys and values of one attempt, and the clients that wait for them. No I/O; one thread. Every
// request gets one answer, at once or when its keys are there. Keys are sent in the payload, in
// front of the value, since they may be any bytes: "key_bytes" lists their lengths.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "convoy/launch/rendezvous/frame.h"

namespace convoy::rendezvous {

class KeyValueTable {
 public:
  using ClientId = uint64_t;
  using TimePoint = std::chrono::steady_clock::time_point;
  using Value = std::shared_ptr<const std::string>;

  struct Answer {
    ClientId to = 0;
    Json head;      // "type" is "ok" or "error" with "kind" and "words"
    Value payload;  // null = none
  };

  explicit KeyValueTable(int64_t max_bytes) : max_bytes_(max_bytes) {}

  // Throws CommError for an invalid request; the client's connection cannot be used any more.
  void handle(ClientId client, const Frame& request, TimePoint now);
  void forget(ClientId client);  // the client's connection is gone
  void expire(TimePoint now);    // answers clients whose wait exceeded its limit
  // ends the attempt: removes all keys and answers waiters with `words`
  void clear(const std::string& words);

  std::vector<Answer> take_answers();
  int64_t num_bytes() const { return num_bytes_; }

 private:
  struct Waiter {
    std::vector<std::string> keys;
    size_t num_missing = 0;
    bool wants_value = false;
    TimePoint deadline;
  };

  // Returns false, and answers with the reason, when the value would exceed the limit.
  bool put(ClientId client, const std::string& key, std::string value);
  void wait(ClientId client, std::vector<std::string> keys, bool wants_value, const Json& head,
            TimePoint now);
  void add(ClientId client, const std::string& key, int64_t amount);
  void compare_set(ClientId client, const std::string& key, const std::string& expected,
                   std::string desired);
  bool remove(const std::string& key);
  void complete(ClientId client, const Waiter& waiter);
  void stop_waiting(ClientId client);
  void ok(ClientId client, Json members = Json::object(), Value payload = nullptr);
  void error(ClientId client, const char* kind, const std::string& words);
  Value find(const std::string& key) const;

  int64_t max_bytes_;
  int64_t num_bytes_ = 0;
  std::unordered_map<std::string, Value> values_;
  std::map<ClientId, Waiter> waiters_;
  std::unordered_map<std::string, std::unordered_set<ClientId>> waiting_for_;
  std::vector<Answer> answers_;
};

}  // namespace convoy::rendezvous
