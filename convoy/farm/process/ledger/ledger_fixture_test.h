// SPDX-License-Identifier: Apache-2.0
//
// A run over the no-op engine in a folder of its own, for the tests of the ledger.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "convoy/core/jobs/job_store.h"
#include "convoy/farm/process/ledger/finished_rows.h"
#include "convoy/farm/process/ledger/ledger_plan.h"
#include "convoy/farm/process/workers/row_worker.h"
#include "files/temporary_folder.h"
#include "process/noop_engine.h"

namespace convoy::process {

// Makes "problem 0", "problem 1", ... Every fifth row equals the row before it.
inline SourceRow numbered_row(int64_t index) {
  const int64_t number = index % 5 == 4 ? index - 1 : index;
  return {.source_index = index,
          .value = {{"problem", "problem " + std::to_string(number)}, {"cost", number % 7}}};
}

inline RowStream numbered_rows(int64_t count) {
  return [count, next = int64_t{0}]() mutable -> std::optional<SourceRow> {
    if (next == count) return std::nullopt;
    return numbered_row(next++);
  };
}

class LedgerTest : public ::testing::Test {
 protected:
  LedgerTest() : store_(open()) {}

  std::unique_ptr<jobs::JobStore> open() const {
    return jobs::open_store((folder_ / "ledger.db").string());
  }
  PlanRequest request(int64_t rows, double temperature = 0.6) const {
    PlanRequest request{.run = {.name = "out.json", .folder = folder_ / "run"},
                        .rows = numbered_rows(rows)};
    request.run.configuration = {{"sampling", {{"temperature", temperature}}}};
    request.run.data_hash = "rows " + std::to_string(rows);
    request.run.texts_in_store = texts_in_store_;
    request.expected_cost = [](const InputRow& row) { return row.value.at("cost"); };
    return request;
  }
  RowRun plan(int64_t rows) { return run_ = plan_rows(*store_, request(rows)); }

  RowWorkerOptions options(const std::string& name = "w1") const {
    RowWorkerOptions options{.name = name, .rows_in_flight = 16};
    return options;
  }
  RowWorkerFigures work(const RowWorkerOptions& options, TextEngine& engine) {
    return run_row_worker(options, run_, program_, engine, *store_);
  }
  RowWorkerFigures work(const RowWorkerOptions& options) {
    NoopEngine engine({.batch = 8, .min_tokens = 1, .max_tokens = 9});
    return work(options, engine);
  }

  // All finished rows as text, in the order in which they are visited.
  std::string output() {
    std::string text;
    const FinishedPass pass = for_each_finished(*store_, run_, [&](PublishedRow& row) {
      text += row.stored.row.state + " " + row.stored.row.value.dump() + "\n";
    });
    EXPECT_EQ(pass.reopened, 0);
    EXPECT_EQ(pass.rows, run_.rows);
    return text;
  }
  // The output that a RowProgram gives for the same rows, one after the other.
  std::string expected_output(int64_t rows) const {
    NoopEngine engine({.batch = 8, .min_tokens = 1, .max_tokens = 9});
    std::string text;
    for (int64_t index = 0; index < rows; ++index) {
      InputRow row{.index = index, .source_index = index};
      row.value = numbered_row(index).value;
      std::vector<KeptStep> kept;
      NextSteps next = program_.next(row, kept);
      for (; !next.finished; next = program_.next(row, kept)) {
        std::map<int64_t, std::string> keys;
        for (Step& step : next.steps) {
          step.request.number = static_cast<int64_t>(keys.size());
          keys[step.request.number] = step.key;
          engine.submit(step.request);
        }
        while (engine.unfinished() > 0)
          for (TextResult& result : engine.step())
            kept.push_back({.key = keys.at(result.number), .result = result});
      }
      text += next.finished->state + " " + next.finished->value.dump() + "\n";
    }
    return text;
  }

  bool texts_in_store_ = false;
  convoy::testing::TemporaryFolder folder_;
  std::unique_ptr<jobs::JobStore> store_;
  NoopProgram program_{{.candidates = 2, .judges = true}};
  RowRun run_;
};

}  // namespace convoy::process
