// SPDX-License-Identifier: Apache-2.0
//
// One worker of a run: claims rows from the ledger, generates all of their texts with one engine,
// and stores finished texts soon. Rows and stages wait only for their own texts. One thread. A
// worker does not know other workers; any number may work on one ledger, on one host or many.
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

// Figures since the worker began.
struct RowWorkerFigures {
  int64_t rows = 0;   // finished rows
  int64_t texts = 0;  // texts that this worker kept
  int64_t prompt_tokens = 0;
  int64_t new_tokens = 0;
  int64_t texts_read_back = 0;  // texts that an earlier worker kept for the row
  int64_t texts_lost = 0;       // texts that were kept but cannot be read, and are made again
  int64_t rows_given_up = 0;    // rows whose lease was lost, so that another worker has them
  int64_t rows_held = 0;        // rows that are held now
  // The engine's time for prompts and for new tokens, by stage. Both times are divided in
  // proportion to the tokens of the texts.
  std::map<std::string, double> seconds_by_stage = {};
  // Tasks of rows that are held but not begun. Such rows are not the cause if the worker dies. A
  // change is reported at once.
  std::vector<int64_t> not_begun = {};
};

struct RowWorkerOptions {
  std::string name;  // see jobs::ClaimRequest; names the worker's segment too
  int64_t rows_in_flight = 64;
  int64_t num_workers = 1;  // approximate number of workers, which share out the ledger's last rows
  std::chrono::milliseconds lease{60'000};
  // The longest time that a finished text waits until it is kept; ten times as long with a slow
  // store. Zero: all texts of one step of the engine are kept before the next step.
  std::chrono::milliseconds keep_within{50};
  int max_tries = 3;                       // most tries of a text whose error may be temporary
  std::function<bool()> stop_wanted = {};  // called after every step; once true, it must stay true
  // Called once a second.
  std::function<void(const RowWorkerFigures&, const EngineFigures&)> tell = {};
};

// Returns when no row of the run is open, or when a stop is wanted. On a stop it keeps all finished
// texts and returns its rows to the store. Throws the errors of the store, of the segments and of
// the engine. Blocks.
RowWorkerFigures run_row_worker(const RowWorkerOptions& options, const RowRun& run,
                                const RowProgram& program, TextEngine& engine,
                                jobs::JobStore& store);

}  // namespace convoy::process
