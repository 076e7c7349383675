// SPDX-License-Identifier: Apache-2.0
//
// Keeps the workers of this host at a run until no row of it is open. Workers that die are
// replaced, and cost only what they held; none waits for another. Others may do the same for the
// same run, here or on other hosts.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "convoy/core/base/log.h"
#include "convoy/core/telemetry/environment.h"
#include "convoy/farm/process/workers/row_worker_process.h"

namespace convoy::process {

struct RowSupervisorOptions {
  std::vector<std::string> worker_command;  // argv; it calls run_row_worker_process()
  int64_t workers = 1;
  // By worker; added to this process's and the task's environment.
  std::vector<std::map<std::string, std::string>> environment = {};
  std::vector<std::vector<int>> cpus = {};  // by worker; empty = this process's CPUs
  std::string log_folder = {};              // for the workers' stderr; empty = nowhere
  int max_crashes = 3;            // workers that one row may crash before it counts as failed
  std::string label = "process";  // labels the progress
  bool asks_servers = false;      // for the texts: the progress counts their requests
  telemetry::ColorChoice color = telemetry::ColorChoice::Auto;
  Log log{};
  // Asked about once a second, for telemetry: by worker; a worker that is not running has no
  // figures.
  std::function<void(const std::map<size_t, WorkerStatus>&)> tell = {};
};

struct RowSupervisorReport {
  int stop_signal = 0;  // 0 = no row is open
  int64_t deaths = 0;   // deaths of workers that were not asked to end
  double seconds = 0;
  RowWorkerFigures work;                    // summed over all workers of this host
  std::map<size_t, RowWorkerFigures> each;  // by worker, its replacements included
};

// Opens the task's store. Owns the stop signals while it runs: one call at a time per process. The
// first signal asks the workers to keep their results and end, the second kills them. Throws the
// store's errors, StateError with the last words of a worker when no worker stays alive, and the
// error that such words name. Blocks.
RowSupervisorReport run_rows(const RowSupervisorOptions& options, const WorkerAssignment& task);

}  // namespace convoy::process
