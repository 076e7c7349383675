// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/ledger/ledger_plan.h"

#include <set>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/utf8.h"
#include "convoy/farm/process/ledger/ledger_fixture_test.h"

namespace convoy::process {
namespace {

using namespace std::chrono_literals;

class LedgerPlan : public LedgerTest {
 protected:
  std::vector<PlannedRow> rows() {
    std::vector<PlannedRow> rows;
    store_->for_each_task(run_.group, [&](const jobs::TaskRecord& task) {
      EXPECT_EQ(jobs::canonical_parameters(task.parameters), task.parameters);
      rows.push_back(PlannedRow::parse(task.parameters));
    });
    return rows;
  }
};

TEST_F(LedgerPlan, EveryRowIsATaskThatLeadsToItsRecord) {
  plan(23);
  EXPECT_TRUE(run_.is_new);
  EXPECT_EQ(run_.rows, 23);
  RecordReader reader(run_);
  const std::vector<PlannedRow> planned = rows();
  ASSERT_EQ(planned.size(), 23u);
  for (int64_t index = 0; index < 23; ++index) {
    const PlannedRow& row = planned[static_cast<size_t>(index)];
    EXPECT_EQ(row.index, index);
    const InputRow input = read_input(reader, row.parameters());
    EXPECT_EQ(input.value, numbered_row(index).value);
    EXPECT_EQ(input.hash, row_hash(input.value));
    EXPECT_EQ(input.source_index, index);
  }
  // Equal rows at other places are other rows.
  EXPECT_EQ(planned[3].hash, planned[4].hash);
}

TEST_F(LedgerPlan, ASecondPlanningAddsNothingAndReadsNothing) {
  plan(23);
  PlanRequest again = request(23);
  again.rows = []() -> std::optional<SourceRow> { throw DataError("the data set was read again"); };
  const RowRun same = plan_rows(*store_, again);
  EXPECT_FALSE(same.is_new);
  EXPECT_EQ(same.group, run_.group);
  EXPECT_EQ(same.rows, 23);
  EXPECT_EQ(store_->counts(run_.group).all(), 23);
}

TEST_F(LedgerPlan, GoesOnWhereAPlanningWasKilled) {
  // Killed while the rows are read: none of them is in the store.
  PlanRequest torn = request(23);
  torn.rows = [rows = numbered_rows(11)]() mutable -> std::optional<SourceRow> {
    if (auto row = rows()) return row;
    throw IoError("killed");
  };
  EXPECT_THROW(plan_rows(*store_, torn), IoError);
  // Killed while the rows are put into the store: some of them are there.
  PlanRequest half = request(23);
  half.expected_cost = [](const InputRow& row) -> int64_t {
    if (row.index == 17) throw IoError("killed");
    return 0;
  };
  EXPECT_THROW(plan_rows(*store_, half), IoError);
  plan(23);
  EXPECT_TRUE(run_.is_new);
  EXPECT_EQ(rows().size(), 23u);
  EXPECT_EQ(rows().back().index, 22);
}

TEST_F(LedgerPlan, ALongPlanningShowsHowFarItIs) {
  PlanRequest many = request(12'000);
  many.progress = {.style = telemetry::ProgressStyle::Lines};
  ::testing::internal::CaptureStderr();
  plan_rows(*store_, many);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("read the data set: row 10000"), std::string::npos) << said;
  EXPECT_NE(said.find("put into the ledger: row 12000/12000 100%"), std::string::npos) << said;
  PlanRequest few = request(200);
  few.run.name = "few.json";
  few.progress = many.progress;
  ::testing::internal::CaptureStderr();
  plan_rows(*store_, few);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST_F(LedgerPlan, TasksThatAStoreLostAreThereAgain) {
  plan(23);
  std::filesystem::remove(folder_ / "ledger.db");
  store_.reset();
  store_ = open();
  plan(23);
  EXPECT_EQ(rows().size(), 23u);
}

TEST_F(LedgerPlan, RowsThatWereDamagedOnTheDiskAreToldAndWrittenAgain) {
  plan(23);
  const std::filesystem::path input = run_.folder / kInputSegment;
  std::filesystem::resize_file(input, std::filesystem::file_size(input) - 5);
  try {
    work(options());
    FAIL();
  } catch (const DataError& error) {
    EXPECT_NE(error.location().hint.find("remove this file"), std::string::npos);
    EXPECT_EQ(error.location().file, input.string());
  }
  store_->release("w1");
  std::filesystem::remove(input);
  plan(23);
  work(options());
  EXPECT_EQ(output(), expected_output(23));
}

TEST_F(LedgerPlan, AChangedConfigurationIsRefusedOrKeptApart) {
  plan(5);
  try {
    plan_rows(*store_, request(5, 0.7));
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("sampling.temperature: 0.7 now, 0.6 then"),
              std::string::npos)
        << error.what();
  }
  EXPECT_EQ(store_->groups().size(), 2u);
  PlanRequest apart = request(5, 0.7);
  apart.keep_apart = true;
  const RowRun other = plan_rows(*store_, apart);
  EXPECT_NE(other.group, run_.group);
  EXPECT_NE(other.folder, run_.folder);
  EXPECT_EQ(store_->counts(other.group).open, 5);
  // Each of the two plans is known from then on.
  EXPECT_FALSE(plan_rows(*store_, request(5, 0.7)).is_new);
  EXPECT_FALSE(plan_rows(*store_, request(5)).is_new);
}

TEST_F(LedgerPlan, ALongValueIsCutBetweenItsLettersInTheRefusal) {
  // A letter has two bytes: wherever both texts could be cut, the cut is amid a letter of one text.
  for (const std::string start : {"", "x"}) {
    PlanRequest first = request(1);
    first.run.name = "cyrillic" + start;
    std::string prompt = start;
    for (int letter = 0; letter < 100; ++letter) prompt += "\xd0\xb4";
    first.run.configuration = {{"prompt", prompt}};
    plan_rows(*store_, first);
    first.run.configuration = {{"prompt", prompt + "?"}};
    try {
      plan_rows(*store_, first);
      FAIL();
    } catch (const ConfigError& error) {
      EXPECT_FALSE(find_invalid_utf8(error.what())) << error.what();
      EXPECT_NE(error.location().hint.find("--keep-apart"), std::string::npos);
    }
  }
}

TEST_F(LedgerPlan, ARowThatCouldNotBeReadIsPlannedWithItsReason) {
  PlanRequest torn = request(1);
  torn.rows = [done = false]() mutable -> std::optional<SourceRow> {
    if (std::exchange(done, true)) return std::nullopt;
    return SourceRow{.value = {{"unreadable_row", "{"}}, .unreadable = "a.jsonl:1: no JSON"};
  };
  torn.expected_cost = {};
  run_ = plan_rows(*store_, torn);
  RecordReader reader(run_);
  const InputRow input = read_input(reader, rows().front().parameters());
  EXPECT_EQ(input.unreadable, "a.jsonl:1: no JSON");
  EXPECT_EQ(input.value["unreadable_row"], "{");
}

TEST_F(LedgerPlan, AChangedDataSetIsRefused) {
  plan(5);
  try {
    plan_rows(*store_, request(6));
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("(the data set has changed)"), std::string::npos)
        << error.what();
  }
}

TEST_F(LedgerPlan, AnotherNodeWaitsForThePlan) {
  const auto never_stop = [] { return true; };
  EXPECT_THROW(wait_for_plan(*store_, request(5).run, 1ms, never_stop, Log(LogLevel::Quiet)),
               ConfigError);
  EXPECT_THROW(wait_for_plan(
                   *store_, request(5).run, 1h, [] { return false; }, Log(LogLevel::Quiet)),
               StopRequest);
  plan(5);
  const RowRun joined =
      wait_for_plan(*store_, request(5).run, 1ms, never_stop, Log(LogLevel::Quiet));
  EXPECT_EQ(joined.group, run_.group);
  EXPECT_EQ(joined.rows, 5);
  try {
    wait_for_plan(*store_, request(5, 0.9).run, 1ms, never_stop, Log(LogLevel::Quiet));
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("temperature"), std::string::npos) << error.what();
  }
}

TEST_F(LedgerPlan, ADataSetWithoutRowsIsARun) {
  plan(0);
  EXPECT_EQ(run_.rows, 0);
  EXPECT_EQ(work(options()).rows, 0);
  EXPECT_EQ(output(), "");
}

}  // namespace
}  // namespace convoy::process
