// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/runner/plan_cost.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "convoy/core/base/error.h"
#include "convoy/farm/sweep/runner/cell_outcome.h"
#include "convoy/farm/sweep/runner/counting_workload_test.h"
#include "convoy/farm/sweep/runner/plan_history.h"
#include "convoy/farm/sweep/runner/range_tally.h"
#include "convoy/farm/sweep/runner/sweep_store.h"
#include "files/temporary_folder.h"

namespace convoy::sweep {
namespace {

// A workload in which a guess takes `cost` ms, and so does a step.
class SleepingWorkload : public Workload {
 public:
  class Guesses : public GuessExperiment {
   public:
    explicit Guesses(double cost) : cost_(cost) {}
    Tally run(uint64_t, uint64_t count) const override {
      // The first call of a measurement asks for 1024 guesses and counts as one.
      const auto counted = static_cast<double>(count == 1024 ? 1 : count);
      std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(cost_ * counted));
      return {};
    }
    double expected_rate() const override { return 500 / cost_; }  // half of the true rate

   private:
    double cost_;
  };
  static double cost_of(const Cell& cell) {
    return nlohmann::json::parse(cell.parameters.str()).value("cost", 1.0);
  }
  std::string name() const override { return "sleeping"; }
  std::string version() const override { return "1"; }
  std::unique_ptr<GuessExperiment> guesses(const Cell& cell) const override {
    return std::make_unique<Guesses>(cost_of(cell));
  }
  std::vector<CellOutcome> compute(const std::vector<Cell>& cells) const override {
    const auto steps =
        nlohmann::json::parse(cells.front().parameters.str()).at("steps").get<double>();
    std::this_thread::sleep_for(
        std::chrono::duration<double, std::milli>(cost_of(cells.front()) * steps));
    return std::vector<CellOutcome>(cells.size());
  }
};

PlannedCell cell_of(const std::string& method, double cost, int64_t seed, int64_t guesses) {
  PlannedCell planned;
  planned.cell = {
      .method = method, .seed = seed, .parameters = nlohmann::json{{"cost", cost}}.dump()};
  planned.guesses = guesses;
  return planned;
}

// A sleep takes at least its time, so the measured time can only be longer.
TEST(PlanCosts, AreThoseOfAllWorkersTogether) {
  std::vector<PlannedCell> cells;
  for (int cost = 1; cost <= 8; ++cost) cells.push_back(cell_of("gnc", cost, 0, 10'000));
  const SleepingWorkload workload;
  const PlanCost cost =
      measure_cost(cells, {}, {{.workload = &workload, .workers = 4, .measured = 2}}, 0.5);
  EXPECT_GE(cost.seconds, 36 * 10.0 / 4);
  EXPECT_LT(cost.seconds, 36 * 10.0);
  EXPECT_NEAR(cost.guesses_per_second * cost.seconds, 80'000, 1);
}

TEST(PlanCosts, DescentsAreMeasuredByShorterOnes) {
  const DescentSteps steps{.parameter = "steps", .usual = 100'000};
  std::vector<PlannedCell> cells;
  for (int seed = 0; seed < 16; ++seed) cells.push_back(cell_of("gd", 0.1, seed, 0));
  const SleepingWorkload workload;
  const PlanTotals totals = totals_of(cells, steps);
  EXPECT_EQ(totals.steps, 1'600'000);
  EXPECT_EQ(totals.descents, 16);
  // Each of the two workers has eight descents; a batch of eight shares the 10 s.
  const PlanCost cost =
      measure_cost(cells, steps, {{.workload = &workload, .workers = 2, .measured = 2}}, 0.1);
  EXPECT_GE(cost.seconds, 10);
  EXPECT_LT(cost.seconds, 40);
  // A single descent cannot be divided among workers.
  cells.resize(1);
  EXPECT_GE(measure_cost(cells, steps, {{.workload = &workload, .workers = 2}}, 0.1).seconds, 10);
}

TEST(PlanCosts, WhatFailsInAProcessIsToldHere) {
  CountingWorkload workload;
  PlannedCell cell = cell_of("gnc", 1, 0, 1000);
  cell.cell.parameters = R"({"throws_at":7})";
  try {
    measure_cost({cell}, {}, {{.workload = &workload}}, 0.1);
    FAIL();
  } catch (const StateError& error) {
    EXPECT_NE(std::string(error.what()).find("a bad guess"), std::string::npos) << error.what();
  }
}

TEST(PlanHistories, FinishedCellsAndGuessesAreNotOpen) {
  const testing::TemporaryFolder folder;
  const auto store = jobs::open_store((folder / "sweep.db").string());
  SweepPlan plan{.label = "t", .workload = "counting", .mode = "", .version = "1", .cells = {}};
  for (int seed = 0; seed < 3; ++seed) plan.cells.push_back(cell_of("gnc", 1, seed, 1000));
  const StoredSweep sweep = store_plan(*store, plan);
  EXPECT_EQ(read_history(*store, plan).open.size(), 3u);
  const auto leases = store->claim(
      {.group = sweep.groups[0].number, .owner = "w", .max_ranges = 2, .units_per_range = 1000});
  ASSERT_EQ(leases.size(), 2u);
  const CountingWorkload workload;
  const std::string half =
      run_range(*workload.guesses(plan.cells[1].cell), plan.cells[1], 0, 400).text();
  const jobs::Result whole = guess_result(
      plan.cells[0], workload.guesses(plan.cells[0].cell)->run(0, 1000), {.device = "cpu"});
  store->complete(
      std::vector<jobs::Completion>{
          {.lease = leases[0], .payload = "", .result = whole},
          {.lease = leases[1], .payload = half, .count = 400, .result = {}}},
      merge_range_payloads);
  const PlanHistory history = read_history(*store, plan);
  ASSERT_EQ(history.open.size(), 2u);
  EXPECT_EQ(history.open[0].guesses, 600);
  EXPECT_EQ(history.open[1].guesses, 1000);
  EXPECT_TRUE(std::isnan(history.command_seconds));
}

}  // namespace
}  // namespace convoy::sweep
