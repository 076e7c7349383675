// SPDX-License-Identifier: Apache-2.0
//
// The finished rows of a run, in the order of the data set.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "convoy/core/jobs/job_store.h"
#include "convoy/farm/process/ledger/ledger_plan.h"
#include "convoy/farm/process/ledger/ledger_record.h"
#include "convoy/farm/process/ledger/row_records.h"

namespace convoy::process {

struct PublishedRow {
  StoredRow stored;
  // Set if the row ended its workers as often as the settings allow. Then there is no value,
  // `stored.row.state` is "engine_error", and `input` is the row as it was read.
  std::optional<InputRow> input = {};
  std::string failure = {};
  int tries = 0;
};

struct FinishedPass {
  int64_t rows = 0;
  // Number of rows whose records cannot be read. These rows are open again, and the visited rows
  // are not all rows.
  int64_t reopened = 0;
};

// Visits every row once; no row may be open. If texts are in the run's folder, memory grows by 40
// bytes per row. `visit` must not use the store. Throws StateError while rows are open, and any
// error that `visit` throws.
FinishedPass for_each_finished(jobs::JobStore& store, const RowRun& run,
                               const std::function<void(PublishedRow&)>& visit);

// Opens all rows in state "engine_error" again and drops their texts, because the settings or the
// machine may have been corrected since. Returns the number of such rows.
int64_t reopen_engine_errors(jobs::JobStore& store, const RowRun& run);

// True if a finished row of the run has a text of the engine. Reads the whole list of tasks.
bool has_answered_rows(jobs::JobStore& store, const RowRun& run);

// The row that a task describes. Throws DataError.
InputRow read_input(RecordReader& reader, const std::string& parameters);

// Encodes the store's entry of a finished row: its location, state and cost.
std::string encode_result(const StoredRow& row, const RecordPlace& place);

}  // namespace convoy::process
