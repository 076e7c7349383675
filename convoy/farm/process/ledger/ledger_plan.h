// SPDX-License-Identifier: Apache-2.0
//
// The rows of a run, put into its ledger: every selected row is a record of one input segment and a
// task of the store. A task is keyed by the row's position and content, and by all that decides its
// result: the configuration and the data set. A result is never used under another configuration.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "convoy/core/base/log.h"
#include "convoy/core/jobs/job_store.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/farm/process/ledger/ledger_record.h"
#include "convoy/farm/process/pipeline/row_program.h"

namespace convoy::process {

struct RunIdentity {
  std::string name = {};              // the run's name within its store
  std::filesystem::path folder = {};  // holds the run's segments; several hosts of a run share it
  // All that decides the rows' results, and nothing else. An object; what differs is named by its
  // keys.
  nlohmann::json configuration = nlohmann::json::object();
  std::string data_hash = {};  // hash of the data set's content
  // Rows and texts lie in the store, so that nodes share no folder; else in `folder`.
  bool texts_in_store = false;

  std::string version() const;  // a hash of configuration, data_hash and texts_in_store
};

struct SourceRow {
  int64_t source_index = 0;  // place in the whole data set, from 0
  nlohmann::ordered_json value = {};
  std::string unreadable = {};  // see InputRow
};

// The selected rows in their order; nothing after the last.
using RowStream = std::function<std::optional<SourceRow>()>;

struct PlanRequest {
  RunIdentity run;
  RowStream rows;                                              // asked once, and only for a new run
  std::function<int64_t(const InputRow&)> expected_cost = {};  // RowProgram's; empty = unknown
  // A run of this name with another configuration or data set: beside it, with rows of its own.
  // Else it is an error.
  bool keep_apart = false;
  // Progress of planning many rows; label, unit and total are set by the planner.
  telemetry::ProgressOptions progress = {.style = telemetry::ProgressStyle::None};
};

// A planned run, as workers and outputs need it.
struct RowRun {
  int64_t group = 0;             // in the store
  std::filesystem::path folder;  // with the segments of this version
  int64_t rows = 0;
  bool is_new = false;  // planned by this call
  bool texts_in_store = false;
};

// Idempotent, and it goes on where a planning was killed. Memory does not grow with the rows.
// Blocks. Throws ConfigError that names what differs from the run's other version, what the store
// and `rows` throw, and IoError.
RowRun plan_rows(jobs::JobStore& store, const PlanRequest& request);

// Waits at most `limit` until another node has planned the run. A node that has not seen the data
// set passes no `run.data_hash` and no selection of rows: it joins the plan with its settings that
// was begun last. Calls `keep_waiting` meanwhile and throws StopRequest when it returns false.
// Throws ConfigError after the limit; the message says what the store holds instead.
RowRun wait_for_plan(jobs::JobStore& store, const RunIdentity& run, std::chrono::milliseconds limit,
                     const std::function<bool()>& keep_waiting, const Log& log);

// The row that a task of such a run describes.
struct PlannedRow {
  int64_t index = 0;
  int64_t source_index = 0;
  std::string hash;
  RecordPlace record = {};  // the row as it was read

  static PlannedRow parse(const std::string& parameters);
  std::string parameters() const;
};

inline constexpr const char* kInputSegment = "input.seg";

}  // namespace convoy::process
