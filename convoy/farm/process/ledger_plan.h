// SPDX-License-Identifier: Apache-2.0
//
// The rows of a run, put into its ledger: every selected row is a record of one input segment and a
// task of the store. A task is keyed by the row's place and content, and by all that decides what
// becomes of it: the configuration and the data set. What is computed under one configuration is
// never taken for another's.
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
#include "convoy/farm/process/row_program.h"

namespace convoy::process {

struct RunIdentity {
  std::string name = {};              // of the run, within its store
  std::filesystem::path folder = {};  // of its segments; of a run on many hosts, shared by them
  // All that decides the rows' results, and nothing else. An object; what differs is named by its
  // keys.
  nlohmann::json configuration = nlohmann::json::object();
  std::string data_hash = {};  // of the data set's content

  std::string version() const;  // a hash of both
};

struct SourceRow {
  int64_t source_index = 0;  // place in the whole data set, from 0
  nlohmann::ordered_json value = {};
  std::string unreadable = {};  // as of InputRow
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
  // How far the planning of many rows is, but for label, unit and total.
  telemetry::ProgressOptions progress = {.style = telemetry::ProgressStyle::None};
};

// A planned run: what workers and outputs need to know.
struct RowRun {
  int64_t group = 0;             // in the store
  std::filesystem::path folder;  // with the segments of this version
  int64_t rows = 0;
  bool is_new = false;  // planned by this call
};

// Idempotent, and it goes on where a planning was killed. Memory does not grow with the rows.
// Blocks. Throws ConfigError that names what differs from the run's other version, what the store
// and `rows` throw, and IoError.
RowRun plan_rows(jobs::JobStore& store, const PlanRequest& request);

// The run as another node planned it. Waits `limit` for that; asks `keep_waiting` meanwhile, which
// ends the wait with StopRequest. Throws ConfigError when it did not come, saying what is there
// instead.
RowRun wait_for_plan(jobs::JobStore& store, const RunIdentity& run, std::chrono::milliseconds limit,
                     const std::function<bool()>& keep_waiting, const Log& log);

// What a task of such a run says of its row.
struct PlannedRow {
  int64_t index = 0;
  int64_t source_index = 0;
  std::string hash;
  int64_t offset = 0;  // of its record in the input segment
  int64_t length = 0;

  static PlannedRow parse(const std::string& parameters);
  std::string parameters() const;
};

inline constexpr const char* kInputSegment = "input.seg";

}  // namespace convoy::process
