// SPDX-License-Identifier: Apache-2.0
//
// One bar over all workers of all runners: guesses (or cells) done of all that are planned, guesses
// per second, accepted guesses, the time left. Counts results in the store, and results that this
// runner's workers are about to hand in; the latter are lost when a worker dies.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "convoy/core/base/log.h"
#include "convoy/core/jobs/job_store.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/farm/sweep/runner/planned_cell.h"
#include "convoy/farm/sweep/runner/sweep_store.h"
#include "convoy/farm/sweep/runner/work_estimate.h"
#include "convoy/farm/sweep/runner/worker_message.h"

namespace convoy::sweep {

class SweepProgress {
 public:
  // Reads what is done already. `workers`: workers of this runner. Everything given must outlive
  // it.
  SweepProgress(const SweepPlan& plan, const Workload& workload, jobs::JobStore& store,
                const StoredSweep& sweep, int64_t workers, telemetry::ColorChoice color,
                LogLevel level);

  void add(size_t worker, const WorkerMessage& message);  // a message from a worker of this runner
  void forget(size_t worker);                             // it is gone
  telemetry::Progress& bar() { return *bar_; }
  void show();     // reads the store every 2 s, or less often where that takes long
  void refresh();  // reads it now
  void finish();
  // The figures of the last show() for a log: "12 %: cells 7/56, 0.84G of 7.00G guesses, ...".
  std::string text() const;
  // Once a minute while the work moves on, every ten minutes when it does not.
  bool log_line_is_due();

 private:
  struct Amount {
    int64_t units = 0;    // what the bar counts: guesses, or cells where there are no guesses
    int64_t guesses = 0;  // computed guesses: a cell may end before its planned ones
    int64_t accepted = 0;
    int64_t cells = 0;
    SweepWork done, left;
  };
  // A task as last read, in the order of its group.
  struct Task {
    int64_t planned = -1;          // guesses; -1 = not read yet
    double seconds_per_guess = 0;  // foretold, of one core
    int64_t accepted = 0;
    int64_t units = 0;   // done
    double seconds = 0;  // time for a descent with a value; 0 = unknown
    bool has_rule = false;
    bool finished = false;
  };

  Amount read_store();
  void read_task(const jobs::TaskRecord& record, Task& task);
  double seconds_per_guess(const Cell& cell);
  Amount now() const;
  void learn_durations();
  std::vector<BusyWorker> busy_workers() const;
  int64_t percent() const;

  const Workload& workload_;
  jobs::JobStore& store_;
  const StoredSweep& sweep_;
  bool counts_guesses_ = false;
  int64_t planned_cells_ = 0, planned_units_ = 0;
  std::vector<std::vector<Task>> tasks_;         // by group
  std::map<std::string, double> known_seconds_;  // per guess, by parameters
  Amount stored_;
  std::map<size_t, Amount> computed_;  // by worker: not handed in
  Amount handed_in_;                   // after the store was read
  int64_t shown_units_ = 0;            // a bar does not go back
  WorkEstimate estimate_;
  struct Begun {
    std::chrono::steady_clock::time_point when;
    int64_t cells = 0;
  };
  std::map<size_t, Begun> begun_;  // by worker of this runner
  int64_t workers_ = 0;            // workers of this runner
  int64_t others_ = 0;             // workers of other runners, when the store was read
  struct Pace {
    std::chrono::steady_clock::time_point when;
    int64_t guesses = 0;
  };
  Pace begin_, pace_;
  telemetry::ProgressFigures figures_;  // shown last
  int64_t shown_cells_ = 0;
  int64_t logged_percent_ = 0;
  std::chrono::steady_clock::time_point logged_ = std::chrono::steady_clock::now();
  double rate_ = -1;  // guesses per second; negative = none yet
  std::chrono::steady_clock::time_point next_read_;
  std::unique_ptr<telemetry::Progress> bar_;
};

}  // namespace convoy::sweep
