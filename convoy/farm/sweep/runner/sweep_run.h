// SPDX-License-Identifier: Apache-2.0
//
// Runs a sweep on this host: plans it into the store, keeps worker processes at work on it, records
// what kills them, and ends when every cell has its result. Others may run the same sweep over the
// same store at the same time, here or on other hosts. One call at a time per process: it owns the
// stop signals while it runs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "convoy/core/base/log.h"
#include "convoy/core/telemetry/environment.h"
#include "convoy/farm/sweep/runner/planned_cell.h"
#include "convoy/farm/sweep/runner/sweep_log.h"
#include "convoy/farm/sweep/runner/sweep_store.h"

namespace convoy::sweep {

struct RunOptions {
  std::string store;                        // path or URL, see jobs::open_store
  std::vector<std::string> worker_command;  // argv up to the flags of `sweep-worker`
  int64_t workers = 0;                      // 0 = usable CPUs
  int64_t cores_per_worker = 0;  // each worker on cores of its own; 0 = as the system likes
  // The devices that compute: "cpu"; "auto": GPUs as well, where they can be used; "cuda":
  // only GPUs.
  std::string compute_device = "cpu";
  // Why GPUs cannot compute, empty = they can; asked only where there are some.
  std::function<std::string()> why_no_gpus = {};
  int64_t max_gpus = -1;  // for guesses, and for programs that workers start; -1 = all, 0 = none
  int64_t workers_per_device = 1;
  double timeout_seconds = 3600;        // for a descent, a command, or silence; 0 = none
  double start_seconds = 0;             // silence of a program's start comes on top of that
  int64_t max_attempts = 3;             // attempts at one range
  double lease_seconds = 60;            // after which a silent worker loses its range
  std::string log_folder;               // folder for sweep.log (SweepLog); empty = none
  Severity log_level = Severity::Info;  // least severity that sweep.log keeps
  std::vector<std::pair<Severity, std::string>> told = {};  // before the run, for that log
  std::function<bool(const Cell&)> redo = {};  // finished cells to compute again; empty = none
  bool keep_going = false;                     // also where the first few cells all fail in one way
  bool starts_programs = false;  // workers start others: nothing of them may stay behind
  telemetry::ColorChoice color = telemetry::ColorChoice::Auto;
  Log log;
};

struct RunReport {
  int64_t cells = 0;
  int64_t done = 0;  // value or censored
  int64_t failed = 0;
  int64_t added = 0;
  int64_t reused = 0;
  bool ran = false;           // something was left to compute
  StoredSweep sweep;          // the sweep with the results
  int stop_signal = 0;        // 0 = ran to its end
  bool failed_alike = false;  // it was stopped since its first cells all failed in one way
  bool finished() const { return done + failed == cells; }
};

// Blocks. Throws the store's errors, ConfigError when requested GPUs are missing, and StateError
// when workers cannot work.
RunReport run_sweep(const SweepPlan& plan, const Workload& workload, const RunOptions& options);

}  // namespace convoy::sweep
