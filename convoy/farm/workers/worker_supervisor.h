// SPDX-License-Identifier: Apache-2.0
//
// Keeps worker processes of this host working on the tasks of a store until no task is open. It
// starts and replaces workers, records the consequences of their deaths, releases the leases of
// owners that are gone, and ends the workers. Supervisors of other processes may work on the same
// store at the same time, here or on other hosts.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "convoy/core/base/log.h"
#include "convoy/core/jobs/job_store.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/machine/processes/process_pool.h"
#include "convoy/machine/processes/signals.h"

namespace convoy::workers {

struct WorkerDeath : processes::ProcessDeath {
  bool worked = false;       // SupervisedWork::handle_line() returned true for one of its lines
  bool memory = false;       // the kernel killed a process because of memory since the last death
  bool told_to_end = false;  // the supervisor told it to end

  bool ended_well() const { return signal == 0 && exit_code == 0; }
  std::string end_text() const;   // such as "SIGKILL" or "exit code 3"
  std::string end_words() const;  // such as "was ended by SIGKILL" or "ended with 3"
  // A failure of this kind, with the code, signal and last words of the worker.
  jobs::Failure failure(std::string kind, std::string message) const;
};

// The consequence of a death for the work.
struct DeathConsequence {
  std::vector<jobs::RangeFailure> failures = {};  // ranges that may have caused it
  std::string message = {};                       // for people; empty = none
  bool idle = false;                              // true: counts towards IdleDeathLimits
};

// One kind of work, as its supervisor uses it. The thread of WorkerSupervisor::run() makes all
// calls; an exception ends run(). Signals and lines of workers wait during a call, so a call must
// not block for long.
class SupervisedWork {
 public:
  virtual ~SupervisedWork() = default;
  virtual telemetry::Progress& bar() = 0;
  // Shows a message about a worker above the progress bar.
  virtual void say(size_t worker, const std::string& text);
  // Warns about something that endangers the work as a whole.
  virtual void warn(const std::string& text) { bar().message("warning: " + text); }
  // Handles a line of a worker's stderr.
  virtual void handle_error_line(size_t /*worker*/, const std::string& /*line*/) {}
  // Handles a line of a worker's stdout. Returns true once that worker has begun its work, which
  // resets the count of idle deaths.
  virtual bool handle_line(size_t worker, const std::string& line) = 0;
  // `leases`: the leases that the worker owned.
  virtual DeathConsequence consequence_of(const WorkerDeath& death,
                                          const std::vector<jobs::Lease>& leases) = 0;
  // Called four times a second, before open tasks are counted. Finishes tasks whose units are all
  // done.
  virtual void settle() {}
  // Called after every check. True: run() leaves the open tasks and returns as it does at the end.
  virtual bool gives_up() { return false; }
  // Called at least ten times a second. May kill workers.
  virtual void look(processes::ProcessPool& /*pool*/) {}
  // `released`: number of leases whose owners are gone.
  virtual void each_second(int64_t /*released*/) {}
};

// Number of workers that may die in a row without having begun their work.
struct IdleDeathLimits {
  int deaths = 5;
  int kills = 5;  // limit if the last of these deaths was a SIGKILL
  // False: deaths are counted over all workers, and run() throws at the limit. True: deaths are
  // counted per worker; a worker at its limit is not started again, and run() throws if no worker
  // is left.
  bool of_each_worker = false;
};

struct SupervisorOptions {
  processes::PoolOptions pool;  // run() sets `signals`
  std::vector<int64_t> groups;  // groups of the store
  bool divides_tasks = false;   // true: one open task is work for all workers; false: for one
  std::chrono::milliseconds lease{60'000};
  bool renews_leases = false;  // true: for the workers; false: the workers do it themselves
  // Time after which workers that were told to end are killed.
  std::chrono::milliseconds stop_grace{5'000};
  int max_attempts = 3;  // most attempts at a range
  IdleDeathLimits idle_deaths = {};
};

// One object at a time per process: it owns the stop signals while it exists. Used by one thread.
class WorkerSupervisor {
 public:
  using OpenStore = std::function<std::unique_ptr<jobs::JobStore>(const jobs::StoreOptions&)>;
  // The text of the warning while the server is away; empty = a text that names the store and the
  // limit.
  using WaitingText = std::function<std::string(std::chrono::milliseconds left)>;

  // Opens the store. The store's calls wait for kServerLimit if the server goes away, or until a
  // stop signal, and then throw IoError. Throws the errors of `open`. Blocks.
  WorkerSupervisor(const OpenStore& open, Log log, WaitingText waiting_text = {});
  WorkerSupervisor(const std::string& store, Log log, WaitingText waiting_text = {});

  jobs::JobStore& store() { return *store_; }

  // Keeps workers running until no task is open or a stop signal comes, then asks them to end and
  // waits for them: the first signal lets them hand in their results, the second kills them.
  // Returns the signal; 0 = no task is open, or the work gives up. Throws the errors of the store
  // and of `work`; ConfigError and IoError when no worker can be started; after too many idle
  // deaths, the error that the last words of the last worker name, or StateError with these words
  // as hint. No worker is left running, however run() ends. Blocks.
  int run(SupervisorOptions options, SupervisedWork& work);

 private:
  class Run;

  bool keep_waiting(std::chrono::milliseconds left);
  int next_stop_signal();  // 0 = no signal is pending

  Log log_;
  WaitingText waiting_text_;
  processes::SignalStream signals_;
  int stop_signal_ = 0;
  std::chrono::steady_clock::time_point next_warning_;
  std::unique_ptr<jobs::JobStore> store_;
};

// Releases the leases of owners that ran on this host and are gone. Returns the number of leases.
// Throws the errors of the store.
int64_t release_gone_owners(jobs::JobStore& store, std::span<const int64_t> groups);

}  // namespace convoy::workers
