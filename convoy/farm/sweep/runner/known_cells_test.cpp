// SPDX-License-Identifier: Apache-2.0
//
// Tests the names that earlier builds gave to plans and cells, and cells that share the text of
// their parameters.
#include <gtest/gtest.h>

#include "convoy/core/base/error.h"
#include "convoy/core/jobs/job_store.h"
#include "convoy/farm/sweep/runner/planned_cell.h"
#include "convoy/farm/sweep/runner/sweep_store.h"
#include "files/temporary_folder.h"

namespace convoy::sweep {
namespace {

PlannedCell command_cell(const SharedText& parameters, int64_t seed) {
  PlannedCell planned;
  planned.cell = {.method = "run", .seed = seed, .parameters = parameters};
  return planned;
}

SharedText command_at(const std::string& lr) {
  return R"({"command":["./noop-answers"],"environment":{},"persistent":true,"result":"loss",)"
         R"("values":{"lr":")" +
         lr + R"("}})";
}

// Returns the plan of `sweep run --persistent --num-seeds 2 --grid lr=0.1,0.01 --result loss --
// ./noop-answers`.
SweepPlan command_plan() {
  SweepPlan plan{.label = "run", .workload = "run", .mode = "", .version = "1", .cells = {}};
  for (const SharedText& parameters : {command_at("0.1"), command_at("0.01")})
    for (const int64_t seed : {0, 1}) plan.cells.push_back(command_cell(parameters, seed));
  return plan;
}

// The values come from a store that the build of 2026-11-21 wrote.
TEST(KnownCells, HaveTheNamesAndIdentitiesOfEarlierBuilds) {
  const SweepPlan plan = command_plan();
  EXPECT_EQ(plan.name(), "run-90f41c60d9fd");
  const std::vector<std::string> ids = {
      "5bcedb76387c319444370b9bac0616386d3490ed0bc4d538a0d2bf9057b66e27",
      "7ed4a2b4c18920c3170568e1dead052672569456a2bb53e0fd1775379ee8763e",
      "e95cd7e2990d90adffb3a977aa9e15bc15cc501c20c5ed51c1812586920e69f3",
      "dc6bc88e83a55f9929ff8f0925a0add403252003b8675e054215ed2493b48d81"};
  const testing::TemporaryFolder folder;
  const auto store = jobs::open_store((folder.path() / "store.db").string());
  const StoredSweep sweep = store_plan(*store, plan);
  EXPECT_EQ(sweep.added, 4);
  std::vector<std::string> found;
  store->for_each_task(sweep.groups.at(0).number,
                       [&](const jobs::TaskRecord& task) { found.push_back(task.id); });
  EXPECT_EQ(found, ids);
  EXPECT_EQ(store_plan(*store, plan).added, 0);
}

TEST(KnownCells, AreFoundByTheBeginningOfOneNameAlone) {
  const testing::TemporaryFolder folder;
  const auto store = jobs::open_store((folder.path() / "store.db").string());
  SweepPlan plan = command_plan();
  store_plan(*store, plan);
  EXPECT_EQ(find_sweeps(*store, "run-90f4").at(0).name, "run-90f41c60d9fd");
  plan.label = "runner";
  store_plan(*store, plan);
  EXPECT_EQ(find_sweeps(*store, "run").size(), 1u) << "a word of the name comes first";
  EXPECT_THROW(find_sweeps(*store, "ru"), ConfigError);
  EXPECT_THROW(find_sweeps(*store, "run-90f5"), ConfigError);
}

TEST(KnownCells, OfGuessesWithARuleHaveTheIdentitiesOfEarlierBuilds) {
  PlannedCell planned;
  planned.cell = {.method = "gnc",
                  .seed = 0,
                  .parameters = R"({"eps_train":1e-05,"num_sequences":1,"sequence_length":5,)"
                                R"("student_dim":4,"teacher_rank":1})"};
  planned.guesses = 1000;
  planned.stop.accepted = 5;
  SweepPlan plan{.label = "ssm",
                 .workload = "ssm",
                 .mode = "",
                 .version = "2-exact-layout2",
                 .cells = {planned}};
  plan.cells.push_back(planned);
  plan.cells[1].cell.seed = 1;
  EXPECT_EQ(plan.name(), "ssm-307d34a3a886");
  const jobs::NewTask task = planned.task();
  EXPECT_EQ(jobs::task_id("ssm", plan.version, task.parameters, task.units),
            "c3e3f856f40fe8e3498ee8999c9c3ee91ab1fc23d2898a5d5063e89ab8d9c587");
}

TEST(KnownCells, SharingTheirTextChangesNoName) {
  SweepPlan plan = command_plan();
  for (PlannedCell& planned : plan.cells)
    planned.cell.parameters = std::string(planned.cell.parameters);
  EXPECT_EQ(plan.name(), command_plan().name());
  EXPECT_EQ(plan.cells, command_plan().cells);
}

TEST(PlannedCellReader, SharesTheTextOfEqualParametersAndMixesNone) {
  PlannedCell odd = command_cell(R"({"a":1})", 3);
  odd.cell.method = "has \"quotes\"";
  odd.stop.standard_error = 0.5;
  odd.guesses = 10;
  const std::vector<PlannedCell> cells = {
      command_cell(no_parameters(), 0), command_cell(R"({"a":1})", 1),
      command_cell(R"({"a":1})", 2),    odd,
      command_cell(R"({"a":1})", 4),    command_cell(R"({"a":12})", 4),
      command_cell(R"({"a":{}})", 4),   command_cell(R"({"a":"}\"{"})", 5),
      command_cell(R"({"a":1})", 6)};
  PlannedCellReader reader;
  std::vector<PlannedCell> read;
  for (const PlannedCell& planned : cells) read.push_back(reader.read(planned.parameters()));
  EXPECT_EQ(read, cells);
  EXPECT_TRUE(read[1].cell.parameters.shares(read[2].cell.parameters));
  EXPECT_TRUE(read[1].cell.parameters.shares(read[8].cell.parameters));
  EXPECT_THROW(reader.read("{}"), DataError);
  EXPECT_EQ(reader.read(cells[5].parameters()), cells[5]);
}

}  // namespace
}  // namespace convoy::sweep
