// SPDX-License-Identifier: Apache-2.0
//
// Puts the rows of a run into its ledger: every selected row becomes a record of one input segment
// and a task of the store. The key of a task is made from the row's position and content, and from
// everything else that decides its result: the configuration and the data set. A result is never
// used under another configuration.
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
  std::filesystem::path folder = {};  // holds the run's segments; hosts of one run share it
  // Everything that decides the rows' results, and nothing else. A JSON object; a message about a
  // difference names its keys.
  nlohmann::json configuration = nlohmann::json::object();
  std::string data_hash = {};  // hash of the data set's content
  // True: rows and texts are in the store, so that nodes need no shared folder. False: they are in
  // `folder`.
  bool texts_in_store = false;

  std::string version() const;  // a hash of configuration, data_hash and texts_in_store
};

struct SourceRow {
  int64_t source_index = 0;  // place in the whole data set, from 0
  nlohmann::ordered_json value = {};
  std::string unreadable = {};  // see InputRow
};

// Returns the selected rows in their order, and nullopt after the last row.
using RowStream = std::function<std::optional<SourceRow>()>;

struct PlanRequest {
  RunIdentity run;
  RowStream rows;  // called once, and only for a new run
  // RowProgram::expected_cost; empty = unknown.
  std::function<int64_t(const InputRow&)> expected_cost = {};
  // Allows a run of this name beside an older one with another configuration or data set; it has
  // rows of its own. Otherwise that is an error.
  bool keep_apart = false;
  // Options for the progress of planning; the planner sets label, unit and total.
  telemetry::ProgressOptions progress = {.style = telemetry::ProgressStyle::None};
};

// A planned run, for workers and outputs.
struct RowRun {
  int64_t group = 0;             // number of the group in the store
  std::filesystem::path folder;  // folder of this version's segments
  int64_t rows = 0;
  bool is_new = false;  // this call planned the run
  bool texts_in_store = false;
};

// Plans the run. Idempotent: another call continues a planning that was killed. Memory does not
// grow with the number of rows. Blocks. Throws ConfigError that names the differences from the
// run's other version, IoError, and the errors of the store and of `rows`.
RowRun plan_rows(jobs::JobStore& store, const PlanRequest& request);

// Waits at most `limit` until another node has planned the run. A node that has not seen the data
// set passes no `run.data_hash` and no selection of rows. It joins the plan that has its settings
// and was begun last. Calls `keep_waiting` meanwhile and throws StopRequest if it returns false.
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
