// SPDX-License-Identifier: Apache-2.0
//
// Runs the workers of this host until no row of the run is open. A worker that dies is replaced,
// and only the texts that it had not kept are lost; no worker waits for another. Several
// supervisors may work on the same run, on this host or on others.
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
  std::vector<std::string> worker_command;  // argv of a program that calls run_row_worker_process()
  int64_t workers = 1;
  // Variables by worker; added to this process's environment and the task's variables.
  std::vector<std::map<std::string, std::string>> environment = {};
  std::vector<std::vector<int>> cpus = {};  // by worker; empty = the CPUs of this process
  std::string log_folder = {};              // folder for the workers' stderr; empty = discarded
  int max_crashes = 3;                      // crashed workers after which a row counts as failed
  std::string label = "process";            // label of the progress
  bool asks_servers = false;                // servers write the texts: the progress counts requests
  telemetry::ColorChoice color = telemetry::ColorChoice::Auto;
  Log log{};
  // Called about once a second, for telemetry, with the status by worker. A worker that is not
  // running has no figures.
  std::function<void(const std::map<size_t, WorkerStatus>&)> tell = {};
};

struct RowSupervisorReport {
  int stop_signal = 0;  // 0 = ended because no row is open
  int64_t deaths = 0;   // deaths of workers that were not told to end
  double seconds = 0;
  RowWorkerFigures work;                    // sums over all workers of this host
  std::map<size_t, RowWorkerFigures> each;  // by worker, together with its replacements
};

// Opens the task's store. Owns the stop signals while it runs: one call at a time per process. The
// first signal tells the workers to keep their results and end; the second kills them. Throws the
// store's errors. If no worker stays alive, throws StateError with the last words of a worker, or
// the error that these words name. Blocks.
RowSupervisorReport run_rows(const RowSupervisorOptions& options, const WorkerAssignment& task);

}  // namespace convoy::process
