// SPDX-License-Identifier: Apache-2.0
//
// The key-value store of a job's ranks with c10d's interface. The coordinator of several nodes, a
// file on one host or another launcher provides the store. Only sources of this layer include this
// header, because it includes c10d's headers.
#pragma once

#include <chrono>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "convoy/train/comm/rank_environment.h"

namespace convoy::comm {

struct KeyValueStore {
  // The keys of one attempt. Blocks until the store is reached. Throws CommError, ConfigError and
  // what c10d throws.
  KeyValueStore(const RankEnvironment& environment, std::chrono::milliseconds reach_timeout);
  // A store in memory, which ranks that are threads of this process share.
  KeyValueStore();

  c10::intrusive_ptr<c10d::Store> keys;
};

}  // namespace convoy::comm
