// SPDX-License-Identifier: Apache-2.0
//
// One worker of a sweep: claims ranges and cells from the store, computes them, hands the results
// in. One thread, one core. Knows nothing of other workers; any number may work on one store, on
// one host or many.
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
  int64_t number = 0;           // in the store
  int64_t cells_per_claim = 1;  // descents that are computed together
};

struct WorkerOptions {
  std::string name;  // see jobs::ClaimRequest
  std::vector<WorkerGroup> groups;
  int64_t first_range_guesses = 1 << 16;  // before any rate is known
  int max_attempts = 3;
  std::chrono::milliseconds lease{60'000};  // renewed by the process that started the worker
  std::string device;                       // the host
  // The GPU that computes, guesses first; empty = the host does.
  std::string gpu;
  bool notes = false;                              // send Note messages
  std::function<void(const WorkerMessage&)> tell;  // must not throw
  std::function<bool()> stop_wanted;  // asked several times a second; once true, stays so
};

// Returns when no task of the groups is open, or when it is to stop; then finished parts of ranges
// are handed in and the rest is given back. An exception from a cell's computation fails its range,
// not the worker; but after a DeviceError it returns, since only another process may use the device
// again. Throws the store's errors. Blocks.
void run_worker(const WorkerOptions& options, const Workload& workload, jobs::JobStore& store);

}  // namespace convoy::sweep
