// SPDX-License-Identifier: Apache-2.0
//
// What the death of a worker means for what it computed.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "convoy/jobs/task.h"
#include "convoy/sweep/runner/worker_pool.h"

namespace convoy::sweep {

// `memory`: the kernel killed a process for its memory since the last death.
jobs::Failure failure_of(const WorkerDeath& death, bool memory, double timeout_seconds);

// A worker that somebody kills is no fault of what it computed, up to a point: a range that many workers were killed
// over has failed.
class BlameForDeaths {
 public:
  bool is_its_fault(const WorkerDeath& death, bool memory, const jobs::Lease& lease);

 private:
  std::map<std::pair<int64_t, int64_t>, int> losses_;  // by task and first unit
};

}  // namespace convoy::sweep
