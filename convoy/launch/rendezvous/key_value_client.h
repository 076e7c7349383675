// SPDX-License-Identifier: Apache-2.0
//
// A rank's end of the coordinator's key-value store, in place of a TCPStore: one authenticated
// connection, keys that belong to one attempt of one run. Every call blocks for its answer.
// Thread-safe; calls take turns, so a wait() holds up the others.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/launch/rendezvous/endpoint.h"
#include "convoy/launch/rendezvous/job_token.h"

namespace convoy::rendezvous {

struct KeyValueOptions {
  Endpoint store;  // CONVOY_STORE_ADDRESS
  std::string run_id;
  int attempt = 0;
  int rank = -1;
  std::chrono::milliseconds connect_timeout{60'000};
};

class KeyValueClient {
 public:
  static constexpr size_t kMaxKeyBytes = 64 << 10;
  static constexpr size_t kMaxValueBytes = 64 << 20;

  // Blocks. Throws ConfigError for a wrong token or run id, CommError when the store cannot be
  // reached or the attempt is over.
  KeyValueClient(KeyValueOptions options, const JobToken& token);
  ~KeyValueClient();
  KeyValueClient(const KeyValueClient&) = delete;
  KeyValueClient& operator=(const KeyValueClient&) = delete;

  // All functions throw CommError when the store is gone, the attempt is over or a value is too
  // large.
  void set(const std::string& key, std::string_view value);
  // Waits until the key is there. Throws CommError after `timeout`, naming the key.
  std::string get(const std::string& key, std::chrono::milliseconds timeout);
  void wait(const std::vector<std::string>& keys, std::chrono::milliseconds timeout);
  bool check(const std::vector<std::string>& keys);  // true when all are there
  // Adds to a number kept as decimal text, absent = 0; returns the sum. Throws CommError for a
  // value that is no number.
  int64_t add(const std::string& key, int64_t amount);
  // Sets the value to `desired` if it is `expected` (empty = absent). Returns the value afterwards,
  // or `expected` when the key is absent and nothing was set.
  std::string compare_set(const std::string& key, std::string_view expected,
                          std::string_view desired);
  bool remove(const std::string& key);  // true when it was there
  int64_t num_keys();

 private:
  class Connection;
  std::unique_ptr<Connection> connection_;
};

}  // namespace convoy::rendezvous
