// SPDX-License-Identifier: Apache-2.0
//
// One progress bar for all workers of all runners. It shows the finished and the planned guesses
// (or cells), guesses per second, accepted guesses and the time left. It counts results in the
// store, and results that this runner's workers have not handed in yet, which are lost if a worker
// dies.
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
  // Reads the finished work from the store. `workers`: workers of this runner. All arguments must
  // outlive this object.
  SweepProgress(const SweepPlan& plan, const Workload& workload, jobs::JobStore& store,
                const StoredSweep& sweep, int64_t workers, telemetry::ColorChoice color,
                LogLevel level);

  void add(size_t worker, const WorkerMessage& message);  // a message from a worker of this runner
  void forget(size_t worker);                             // the worker is gone
  telemetry::Progress& bar() { return *bar_; }
  void show();     // reads the store every 2 s, or less often if reading takes long
  void refresh();  // reads the store now
  void finish();
  // The figures of the last show() for a log: "12 %: cells 7/56, 0.84G of 7.00G guesses, ...".
  std::string text() const;
  // True once a minute while the work advances, and every ten minutes while it does not.
  bool log_line_is_due();

 private:
  struct Amount {
    int64_t units = 0;    // units of the bar: guesses, or cells if there are no guesses
    int64_t guesses = 0;  // computed guesses; a cell may end before the planned number
    int64_t accepted = 0;
    int64_t cells = 0;
    SweepWork done, left;
  };
  // A task as it was last read; tasks are in the order of their group.
  struct Task {
    int64_t planned = -1;          // planned guesses; -1 = not read yet
    double seconds_per_guess = 0;  // predicted, on one core
    int64_t accepted = 0;
    int64_t units = 0;   // finished units
    double seconds = 0;  // time of a descent with a value; 0 = unknown
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
  std::map<std::string, double> known_seconds_;  // seconds per guess, by parameters
  Amount stored_;
  std::map<size_t, Amount> computed_;  // by worker: results that are not handed in
  Amount handed_in_;                   // results handed in after the store was read
  int64_t shown_units_ = 0;            // units that the bar shows; never decreases
  WorkEstimate estimate_;
  struct Begun {
    std::chrono::steady_clock::time_point when;
    int64_t cells = 0;
  };
  std::map<size_t, Begun> begun_;  // by worker of this runner
  int64_t workers_ = 0;            // workers of this runner
  int64_t others_ = 0;             // workers of other runners when the store was read
  struct Pace {
    std::chrono::steady_clock::time_point when;
    int64_t guesses = 0;
  };
  Pace begin_, pace_;
  telemetry::ProgressFigures figures_;  // figures that were shown last
  int64_t shown_cells_ = 0;
  int64_t logged_percent_ = 0;
  std::chrono::steady_clock::time_point logged_ = std::chrono::steady_clock::now();
  double rate_ = -1;  // guesses per second; negative = none yet
  std::chrono::steady_clock::time_point next_read_;
  std::unique_ptr<telemetry::Progress> bar_;
};

}  // namespace convoy::sweep
