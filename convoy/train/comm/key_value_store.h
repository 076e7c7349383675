// SPDX-License-Identifier: Apache-2.0
//
// The key-value store of a job's ranks with c10d's interface. Its place may be the coordinator of
// several nodes, a file on one host, or another launcher. Only for sources of this layer, because
// it includes c10d's headers.
#pragma once

#include <chrono>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "convoy/train/comm/rank_environment.h"

namespace convoy::comm {

struct KeyValueStore {
  // Keys of one attempt. Blocks until the store is reached. Throws CommError, ConfigError and what
  // c10d throws.
  KeyValueStore(const RankEnvironment& environment, std::chrono::milliseconds reach_timeout);
  // For ranks of this process, which share it.
  KeyValueStore();

  c10::intrusive_ptr<c10d::Store> keys;
};

}  // namespace convoy::comm
