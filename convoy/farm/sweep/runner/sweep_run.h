// SPDX-License-Identifier: Apache-2.0
//
// Runs a sweep on this host: plans it into the store, keeps worker processes at work on it, records
// what kills them, and ends when every cell has its result. Several runners may run the same sweep
// over the same store at the same time, on this host or on others. One call at a time per process:
// it owns the stop signals while it runs.
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
  std::vector<std::string> worker_command;  // argv before the flags of `sweep-worker`
  int64_t workers = 0;                      // 0 = one per usable CPU
  int64_t cores_per_worker = 0;  // cores reserved for each worker; 0 = the system chooses
  // The devices that compute. "cpu": only CPUs. "auto": also GPUs, if they can be used. "cuda":
  // only GPUs.
  std::string compute_device = "cpu";
  // Returns the reason why GPUs cannot compute; empty = they can. Called only if there are GPUs.
  std::function<std::string()> why_no_gpus = {};
  // Most GPUs for guesses and for programs that workers start; -1 = all, 0 = none.
  int64_t max_gpus = -1;
  int64_t workers_per_device = 1;
  double timeout_seconds = 3600;        // for a descent, a command, or silence; 0 = no limit
  double start_seconds = 0;             // added to the limit of silence while a program starts
  int64_t max_attempts = 3;             // most attempts at one range
  double lease_seconds = 60;            // time after which a silent worker loses its range
  std::string log_folder;               // folder for sweep.log (SweepLog); empty = none
  Severity log_level = Severity::Info;  // lowest severity that sweep.log keeps
  // Messages from before the run, for sweep.log.
  std::vector<std::pair<Severity, std::string>> told = {};
  // True for finished cells to compute again; empty = none.
  std::function<bool(const Cell&)> redo = {};
  bool keep_going = false;       // continues if the first few cells all fail in the same way
  bool starts_programs = false;  // workers start programs, which must not be left running
  telemetry::ColorChoice color = telemetry::ColorChoice::Auto;
  Log log;
};

struct RunReport {
  int64_t cells = 0;
  int64_t done = 0;  // cells with a value, and censored cells
  int64_t failed = 0;
  int64_t added = 0;
  int64_t reused = 0;
  bool ran = false;           // there was something to compute
  StoredSweep sweep;          // the sweep in the store, with its results
  int stop_signal = 0;        // 0 = the run was not stopped by a signal
  bool failed_alike = false;  // stopped because its first cells all failed in the same way
  bool finished() const { return done + failed == cells; }
};

// Blocks. Throws the store's errors, ConfigError when requested GPUs are missing, and StateError
// when workers cannot work.
RunReport run_sweep(const SweepPlan& plan, const Workload& workload, const RunOptions& options);

}  // namespace convoy::sweep
