// SPDX-License-Identifier: Apache-2.0
//
// The key-value store of a job's ranks with c10d's interface, whatever holds it: the coordinator of
// several nodes, a file on one host, another launcher. For sources of this layer only: it brings
// c10d's headers.
#pragma once

#include <chrono>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "convoy/train/comm/environment.h"

namespace convoy::comm {

struct JobStore {
  // Keys of one attempt. Blocks until the store is reached. Throws CommError, ConfigError and what
  // c10d throws.
  JobStore(const RankEnvironment& environment, std::chrono::milliseconds reach_timeout);
  // For ranks of this process, which share it.
  JobStore();

  c10::intrusive_ptr<c10d::Store> keys;
};

}  // namespace convoy::comm
