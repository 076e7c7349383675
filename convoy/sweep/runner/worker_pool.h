// SPDX-License-Identifier: Apache-2.0
//
// The worker processes of one runner, and what each of them says that it computes. Driven by one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "convoy/launch/process_pool.h"
#include "convoy/sweep/runner/worker_message.h"

namespace convoy::sweep {

struct WorkerDeath : launch::ProcessDeath {
  std::vector<int64_t> leases;  // that it was computing
  bool worked = false;          // it had begun at least one lease
};

struct PoolNews {
  struct Message {
    size_t worker = 0;
    WorkerMessage message;
  };
  std::vector<Message> messages;
  std::vector<launch::ProcessNews::Line> lines;  // of stderr
  std::vector<WorkerDeath> deaths;
};

class WorkerPool : public launch::ProcessPool {
 public:
  explicit WorkerPool(launch::PoolOptions options);

  // wait(), with what the lines of the workers mean.
  PoolNews listen(std::chrono::milliseconds limit, int other);
  // Of the workers that compute.
  std::vector<size_t> silent_at_work(std::chrono::duration<double> limit) const;

 private:
  struct Work {
    std::vector<int64_t> leases;
    bool begun = false;
  };
  std::vector<Work> work_;  // by worker
};

}  // namespace convoy::sweep
