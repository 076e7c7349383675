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
  // Set when the row ended its workers as often as is allowed: then there is no value,
  // `stored.row.state` is "engine_error", and this is the row as it was read.
  std::optional<InputRow> input = {};
  std::string failure = {};
  int tries = 0;
};

struct FinishedPass {
  int64_t rows = 0;
  // Rows whose record cannot be read: they are open again. Then the rows that were visited are not
  // all of them.
  int64_t reopened = 0;
};

// Visits every row once, when no row is open. Memory grows by 40 bytes per row where texts are in
// the run's folder. `visit` may not use the store. Throws StateError while rows are open, and what
// `visit` throws.
FinishedPass for_each_finished(jobs::JobStore& store, const RowRun& run,
                               const std::function<void(PublishedRow&)>& visit);

// Rows in state "engine_error" are open again, without their texts: settings or a machine that were
// wrong may be right by now. Returns how many.
int64_t reopen_engine_errors(jobs::JobStore& store, const RowRun& run);

// The row of a task. Throws DataError.
InputRow read_input(RecordReader& reader, const std::string& parameters);

// The store's entry of a finished row: its location, state and cost.
std::string encode_result(const StoredRow& row, const RecordPlace& place);

}  // namespace convoy::process
