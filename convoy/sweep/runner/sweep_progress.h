// SPDX-License-Identifier: Apache-2.0
//
// One bar over all workers: guesses or cells done of all that are planned, guesses per second, the share that passed.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "convoy/base/log.h"
#include "convoy/jobs/job_store.h"
#include "convoy/sweep/runner/planned_cell.h"
#include "convoy/sweep/runner/sweep_store.h"
#include "convoy/sweep/runner/worker_message.h"
#include "convoy/telemetry/progress.h"

namespace convoy::sweep {

class SweepProgress {
 public:
  // Reads what is done already. The store and the sweep must outlive it.
  SweepProgress(const SweepPlan& plan, jobs::JobStore& store, const StoredSweep& sweep,
                telemetry::ColorChoice color, LogLevel level);

  void add(const WorkerMessage& message);  // of a worker of this runner
  void message(const std::string& line) { bar_->message(line); }
  void show();     // reads the store every 2 s: others may be at work too
  void refresh();  // reads it now
  void finish();

 private:
  struct Done {
    int64_t units = 0;  // guesses, or cells where there are no guesses
    int64_t cells = 0;
  };
  Done read_store();

  jobs::JobStore& store_;
  const StoredSweep& sweep_;
  bool counts_guesses_ = false;
  int64_t planned_cells_ = 0;
  Done stored_;
  int64_t since_ = 0;     // units told by workers after the store was read
  int64_t accepted_ = 0;  // told by workers
  int64_t guesses_ = 0;   // told by workers
  double rate_ = 0;       // guesses per second, over the last seconds
  int64_t rate_guesses_ = 0;
  std::chrono::steady_clock::time_point rate_begin_, next_read_;
  std::unique_ptr<telemetry::Progress> bar_;
};

}  // namespace convoy::sweep
