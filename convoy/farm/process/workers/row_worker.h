// SPDX-License-Identifier: Apache-2.0
//
// One worker of a run: takes rows from the ledger, keeps all of their texts in one engine, and
// keeps every finished text at once. Rows and stages wait for nothing but their own texts. One
// thread. Knows nothing of other workers; any number may work on one ledger, on one host or many.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "convoy/core/jobs/job_store.h"
#include "convoy/farm/process/ledger/ledger_plan.h"
#include "convoy/farm/process/pipeline/row_program.h"
#include "convoy/farm/process/text_engine.h"

namespace convoy::process {

// Since the worker began.
struct RowWorkerFigures {
  int64_t rows = 0;   // finished
  int64_t texts = 0;  // kept by this worker
  int64_t prompt_tokens = 0;
  int64_t new_tokens = 0;
  int64_t texts_read_back = 0;  // kept by an earlier life of the row
  int64_t texts_lost = 0;       // kept, but not to be read: made again
  int64_t rows_given_up = 0;    // the lease was lost and another worker has them
  int64_t rows_held = 0;        // now
  // The engine's time for prompts and for new tokens, each shared out by the texts' tokens.
  std::map<std::string, double> seconds_by_stage = {};
  // Tasks of rows that are held and not begun: no fault of theirs when the worker goes down. Told
  // as soon as it changes.
  std::vector<int64_t> not_begun = {};
};

struct RowWorkerOptions {
  std::string name;  // see jobs::ClaimRequest; its segment is named after it
  int64_t rows_in_flight = 64;
  int64_t num_workers = 1;  // approximate number of workers, which share out the ledger's last rows
  std::chrono::milliseconds lease{60'000};
  // The time that a finished text may wait; ten times as long for a slow store. Zero: all texts of
  // a step of the engine are kept before the next step.
  std::chrono::milliseconds keep_within{50};
  int max_tries = 3;                       // tries of a text whose error may be temporary
  std::function<bool()> stop_wanted = {};  // asked after every step; once true, stays so
  std::function<void(const RowWorkerFigures&, const EngineFigures&)> tell = {};  // once a second
};

// Returns when no row of the run is open, or when it is to stop; then its rows are given back, with
// all finished texts kept. Throws what the store, the segments and the engine throw. Blocks.
RowWorkerFigures run_row_worker(const RowWorkerOptions& options, const RowRun& run,
                                const RowProgram& program, TextEngine& engine,
                                jobs::JobStore& store);

}  // namespace convoy::process
