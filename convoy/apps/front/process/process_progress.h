// SPDX-License-Identifier: Apache-2.0
//
// Progress of `convoy process`, written to events.jsonl during the run for `convoy runs` and the
// page.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>

#include "convoy/core/jobs/job_store.h"
#include "convoy/core/telemetry/logs/event_log.h"
#include "convoy/farm/process/ledger/ledger_plan.h"
#include "convoy/farm/process/workers/row_worker_process.h"

namespace convoy::apps {

class ProcessProgress {
 public:
  // `events` and `store` must outlive this object. Counts the store's rows, including rows of other
  // hosts.
  ProcessProgress(telemetry::EventLog& events, jobs::JobStore& store, const process::RowRun& run)
      : events_(events), store_(store), run_(run) {}

  // `statuses`: by worker, from the supervisor. Writes a row when the last one is old enough.
  void add(const std::map<size_t, process::WorkerStatus>& statuses);
  // Writes the last row, with the speed of the whole start.
  void finish(double tokens_per_second);

 private:
  using Clock = std::chrono::steady_clock;

  void write(double tokens_per_second);

  telemetry::EventLog& events_;
  jobs::JobStore& store_;
  process::RowRun run_;
  Clock::time_point last_ = Clock::now();
  Clock::time_point next_ = last_ + std::chrono::seconds(2);  // the first one soon
  std::map<size_t, process::WorkerStatus> before_;
};

}  // namespace convoy::apps
