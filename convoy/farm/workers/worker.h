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

// If a server is away for longer than this, the work ends. Finished tasks are kept, and the same
// command continues.
inline constexpr std::chrono::minutes kServerLimit{10};

// The text "waiting for it, 10 min at most, 9 min 30 s more".
std::string server_wait_text(std::chrono::milliseconds left);

// One kind of work, as a worker does it. The thread of run_loop() makes all calls; an exception
// ends the loop.
class WorkSource {
 public:
  virtual ~WorkSource() = default;
  // Claims leases under the worker's name, as many as are useful now. Returns false if there is
  // nothing to compute.
  virtual bool claim() = 0;
  // Computes a part of the claimed work, for at most a few seconds if possible: between two calls
  // the loop renews leases and checks for a stop request.
  virtual void compute() = 0;
  // Hands in the results that are due. The `last` call hands in all results; after it the loop
  // releases all leases.
  virtual void complete(bool last) = 0;
  virtual void idle() = 0;  // called if claim() got nothing; the worker is about to sleep
  // Leases that the loop renews; empty if the supervisor renews them.
  virtual std::vector<jobs::Lease> held() const { return {}; }
  // Called for a lease of held() that has another owner now. Its result no longer counts.
  virtual void lose(const jobs::Lease& /*lease*/) {}
};

struct LoopOptions {
  std::string name;                  // owner of the leases, see jobs::ClaimRequest
  std::vector<int64_t> groups = {};  // groups of the store
  std::chrono::milliseconds lease{60'000};
  std::function<bool()> stop_wanted = {};  // once true, it must stay true; empty = never
};

// Returns when no task of the groups is open, or when a stop is requested. Before it returns, it
// hands in results, releases the worker's leases and syncs the store. Throws the errors of the
// store and of `work`; then leases stay until they expire or the supervisor releases them. Blocks.
void run_loop(const LoopOptions& options, WorkSource& work, jobs::JobStore& store);

// True if a task of the groups has no result. Throws the errors of the store.
bool any_open(jobs::JobStore& store, std::span<const int64_t> groups);

// The worker's side of a process that a WorkerSupervisor started. From its construction on,
// SIGTERM, SIGINT and SIGHUP are stop requests. One per process, on its main thread. Throws
// IoError.
class WorkerProcess {
 public:
  WorkerProcess();
  const std::string& name() const { return name_; }  // owner of its leases; unique among processes
  // The function is valid as long as this object exists. It does not block.
  std::function<bool()> stop_wanted();
  // Opens a store whose calls wait for kServerLimit if the server goes away, or until a stop is
  // requested. This object must outlive the store. Throws the errors of jobs::open_store(). Blocks.
  std::unique_ptr<jobs::JobStore> open_store(const std::string& url);

 private:
  processes::SignalStream signals_;
  std::string name_;
};

// Writes a line, which ends in '\n', to stdout, from which the supervisor reads. Never throws.
// Blocks while the pipe is full.
void send_to_supervisor(const std::string& line);

}  // namespace convoy::workers
