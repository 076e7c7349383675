// SPDX-License-Identifier: Apache-2.0
//
// One worker: the loop in which it claims tasks from a store, computes them and hands in their
// results, and the process around that loop. Workers share nothing but the store; any number may
// use it, on one host or many.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "convoy/core/jobs/job_store.h"
#include "convoy/machine/processes/signals.h"

namespace convoy::workers {

// A server that is gone for longer ends the work. Finished tasks are kept, and the same command
// continues.
inline constexpr std::chrono::minutes kServerLimit{10};

// "waiting for it, 10 min at most, 9 min 30 s more".
std::string server_wait_text(std::chrono::milliseconds left);

// One kind of work, as a worker does it. The loop's thread calls; what a call throws ends the loop.
class WorkSource {
 public:
  virtual ~WorkSource() = default;
  // Takes leases under the worker's name, as many as are useful now. False when there is nothing to
  // compute.
  virtual bool claim() = 0;
  // Computes a part of what is claimed, for a few seconds at most where that is possible: between
  // two calls the loop renews leases and looks for a stop request.
  virtual void compute() = 0;
  // Hands in the results that are due; all of them when this is the `last` call, after which the
  // loop releases all leases.
  virtual void complete(bool last) = 0;
  virtual void idle() = 0;  // claim() had nothing; the worker is about to sleep
  // Leases that the loop renews; none where the supervisor renews them.
  virtual std::vector<jobs::Lease> held() const { return {}; }
  // A lease of held() that has another owner now: its result no longer counts.
  virtual void lose(const jobs::Lease& /*lease*/) {}
};

struct LoopOptions {
  std::string name;                  // the owner of the leases, see jobs::ClaimRequest
  std::vector<int64_t> groups = {};  // groups of the store
  std::chrono::milliseconds lease{60'000};
  std::function<bool()> stop_wanted = {};  // once true, stays so; empty = never
};

// Returns when no task of the groups is open or a stop is requested; then results are handed in,
// the worker's leases released and the store synced. Throws what the store and `work` throw: leases
// then stay until they expire or the supervisor releases them. Blocks.
void run_loop(const LoopOptions& options, WorkSource& work, jobs::JobStore& store);

// True when a task of the groups has no result. Throws what the store throws.
bool any_open(jobs::JobStore& store, std::span<const int64_t> groups);

// A process that a WorkerSupervisor started. From construction on SIGTERM, SIGINT and SIGHUP are
// stop requests. One per process, on its main thread. Throws IoError.
class WorkerProcess {
 public:
  WorkerProcess();
  const std::string& name() const { return name_; }  // owns its leases; no other process has it
  // Valid as long as this object. Does not block.
  std::function<bool()> stop_wanted();
  // Its calls wait kServerLimit for a server that goes away, or until a stop is requested. This
  // object must outlive the store. Throws what jobs::open_store() throws. Blocks.
  std::unique_ptr<jobs::JobStore> open_store(const std::string& url);

 private:
  processes::SignalStream signals_;
  std::string name_;
};

// Writes a line, which ends in '\n', to stdout, where the supervisor reads. Never throws. Blocks
// while the pipe is full.
void send_to_supervisor(const std::string& line);

}  // namespace convoy::workers
