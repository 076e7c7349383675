// SPDX-License-Identifier: Apache-2.0
//
// The coordinator's key-value store with c10d's interface. The ranks of several nodes meet at it in
// place of a TCPStore, which has no authentication and listens on every interface. The store itself
// keeps the keys of different attempts apart.
#pragma once

#include <memory>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "convoy/launch/rendezvous/key_value_client.h"

namespace convoy::comm {

// Thread-safe. Every call blocks for its answer and throws CommError.
class ControlStore : public c10d::Store {
 public:
  // Blocks. Throws ConfigError for a wrong token, CommError when the store cannot be reached.
  ControlStore(rendezvous::KeyValueOptions options, rendezvous::JobToken token,
               std::chrono::milliseconds timeout);

  c10::intrusive_ptr<c10d::Store> clone() override;  // over a connection of its own

  using c10d::Store::compareSet;
  using c10d::Store::set;
  void set(const std::string& key, const std::vector<uint8_t>& value) override;
  std::vector<uint8_t> compareSet(const std::string& key, const std::vector<uint8_t>& expected,
                                  const std::vector<uint8_t>& desired) override;
  std::vector<uint8_t> get(const std::string& key) override;
  int64_t add(const std::string& key, int64_t value) override;
  bool deleteKey(const std::string& key) override;
  bool check(const std::vector<std::string>& keys) override;
  int64_t getNumKeys() override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override;

 private:
  rendezvous::KeyValueOptions options_;
  rendezvous::JobToken token_;
  rendezvous::KeyValueClient client_;
};

}  // namespace convoy::comm
