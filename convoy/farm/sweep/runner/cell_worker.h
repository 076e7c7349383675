// SPDX-License-Identifier: Apache-2.0
//
// One worker of a sweep: claims ranges and cells from the store, computes them, hands the results
// in. One thread, one core. A worker does not know other workers; any number may work on one store,
// on one host or many.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "convoy/core/jobs/job_store.h"
#include "convoy/farm/sweep/runner/worker_message.h"
#include "convoy/farm/sweep/workload.h"

namespace convoy::sweep {

struct WorkerGroup {
  int64_t number = 0;           // number of the group in the store
  int64_t cells_per_claim = 1;  // number of descents that are computed together
};

struct WorkerOptions {
  std::string name;  // see jobs::ClaimRequest
  std::vector<WorkerGroup> groups;
  int64_t first_range_guesses = 1 << 16;  // size of the first range, before a rate is known
  int max_attempts = 3;
  std::chrono::milliseconds lease{60'000};  // time of a lease; the worker's runner renews leases
  std::string device;                       // name of the host's hardware
  // The GPU that computes; its worker computes guesses first. Empty = the CPU computes.
  std::string gpu;
  bool notes = false;                              // true: send Note messages
  std::function<void(const WorkerMessage&)> tell;  // must not throw
  std::function<bool()> stop_wanted;  // called several times a second; once true, it must stay true
};

// Returns when no task of the groups is open, or when a stop is wanted. On a stop it hands in the
// finished parts of ranges and gives back the rest. An exception from a cell's computation fails
// its range, not the worker. After a DeviceError it returns, because only another process can use
// the device again. Throws the store's errors. Blocks.
void run_worker(const WorkerOptions& options, const Workload& workload, jobs::JobStore& store);

}  // namespace convoy::sweep
