// SPDX-License-Identifier: Apache-2.0
//
// A worker that runs as a process of its own. The supervisor passes its task in the environment.
// The worker reports one line per second on its stdout.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "convoy/farm/process/workers/row_worker.h"

namespace convoy::process {

// The assignment of a worker: the store and the run of its rows. It does not say how rows are
// processed.
struct WorkerAssignment {
  std::string store = {};  // URL, possibly with a password: not for command lines
  RowRun run = {};
  int64_t rows_in_flight = 64;
  int64_t num_workers = 1;
  int64_t lease_ms = 60'000;
  int64_t max_tries = 3;

  std::map<std::string, std::string> environment() const;
  // Reads the task from this process's environment and removes it, so that children do not inherit
  // it. Throws ConfigError.
  static WorkerAssignment take_from_environment();
};

struct WorkerEquipment {
  std::unique_ptr<RowProgram> program = nullptr;
  std::unique_ptr<TextEngine> engine = nullptr;
  std::chrono::milliseconds keep_within = RowWorkerOptions().keep_within;
};

// Works until no row is open, or until SIGTERM, SIGINT or SIGHUP. Calls `make` after the signal
// handlers are installed. Throws the errors of run_row_worker() and of `make`. Blocks.
RowWorkerFigures run_row_worker_process(const WorkerAssignment& task,
                                        const std::function<WorkerEquipment()>& make);

// Tells the supervisor of this worker to show `text`, which has no line break.
void send_note(const std::string& text);
// The line on the worker's stdout that carries the note.
std::string note_line(const std::string& text);
std::optional<std::string> parse_note(const std::string& line);

// The status of a worker, which is one line of its stdout.
struct WorkerStatus {
  RowWorkerFigures worker = {};
  EngineFigures engine = {};

  std::string line() const;  // ends in '\n'
  // Nullopt: another kind of line.
  static std::optional<WorkerStatus> parse(const std::string& line);
};

}  // namespace convoy::process
