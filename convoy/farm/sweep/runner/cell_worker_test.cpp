// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/runner/cell_worker.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "convoy/farm/sweep/runner/cell_outcome.h"
#include "convoy/farm/sweep/runner/counting_workload_test.h"
#include "convoy/farm/sweep/runner/range_tally.h"
#include "convoy/farm/sweep/runner/sweep_store.h"
#include "convoy/machine/processes/process_name.h"
#include "files/temporary_folder.h"

namespace convoy::sweep {
namespace {

PlannedCell guesses_of(int64_t seed, int64_t guesses, const std::string& parameters = "{}") {
  PlannedCell planned;
  planned.cell = {.method = "gnc", .seed = seed, .parameters = parameters};
  planned.guesses = guesses;
  return planned;
}

PlannedCell descent_of(int64_t seed, const std::string& parameters = "{}") {
  PlannedCell planned;
  planned.cell = {.method = "gd", .seed = seed, .parameters = parameters};
  return planned;
}

class SweepWorker : public ::testing::Test {
 protected:
  SweepWorker() : store_(jobs::open_store((folder_ / "sweep.db").string())) {}

  SweepPlan plan(std::vector<PlannedCell> cells, const std::string& version = "1") const {
    return {.label = "test",
            .workload = "counting",
            .mode = "",
            .version = version,
            .cells = std::move(cells)};
  }

  // Works until no cell is open, or until the stop request was read `turns` times.
  SweepResults work(const SweepPlan& plan, int64_t turns = 1 << 30) {
    sweep_ = store_plan(*store_, plan);
    WorkerOptions options;
    options.name = processes::process_name(::getpid());
    for (const jobs::Group& group : sweep_.groups) options.groups.push_back({group.number, 8});
    options.first_range_guesses = 10'000;
    options.tell = [&](const WorkerMessage& message) { messages_.push_back(message); };
    options.stop_wanted = [&] { return --turns < 0; };
    run_worker(options, CountingWorkload(), *store_);
    return read_results(*store_, sweep_, CountingWorkload());
  }

  testing::TemporaryFolder folder_;
  std::unique_ptr<jobs::JobStore> store_;
  StoredSweep sweep_;
  std::vector<WorkerMessage> messages_;
};

TEST_F(SweepWorker, RangesAddUpToTheWholeCell) {
  const SweepResults results = work(plan({guesses_of(1, 250'000), descent_of(4)}));
  ASSERT_EQ(results.cells.size(), 2u);
  const Tally whole = CountingWorkload().guesses(results.cells[0].cell)->run(0, 250'000);
  EXPECT_EQ(results.cells[0].tally, whole);
  EXPECT_EQ(results.cells[0].value, whole.mean());
  EXPECT_EQ(results.cells[1].value, 4);
  EXPECT_EQ(results.count(CellState::Value), 2);
}

TEST_F(SweepWorker, ACellThatThrowsFailsAloneAndIsNoZero) {
  const SweepResults results =
      work(plan({guesses_of(1, 1000), guesses_of(2, 1000, R"({"throws_at":500})"), descent_of(3),
                 descent_of(4, R"({"memory":true})"), descent_of(5, R"({"nan":true})")}));
  std::map<int64_t, const CellResult*> by_seed;
  for (const CellResult& cell : results.cells) by_seed[cell.cell.seed] = &cell;
  EXPECT_EQ(by_seed[1]->state, CellState::Value);
  EXPECT_EQ(by_seed[3]->value, 3);
  const std::map<int64_t, std::pair<std::string, int>> failed = {
      {2, {"numeric", 3}}, {4, {"memory", 3}}, {5, {"non_finite", 1}}};
  for (const auto& [seed, how] : failed) {
    EXPECT_EQ(by_seed[seed]->state, CellState::Failed) << seed;
    EXPECT_EQ(by_seed[seed]->failure->kind, how.first);
    EXPECT_EQ(by_seed[seed]->failure->attempt, how.second);
    EXPECT_TRUE(std::isnan(by_seed[seed]->value));
  }
  EXPECT_EQ(retry_failed(*store_, sweep_), 3);
}

// A driver that compiles its kernels may make the start this slow, longer than a range may take.
TEST_F(SweepWorker, AnExperimentThatIsSlowToMakeLosesNoGuess) {
  const SweepResults results = work(plan({guesses_of(1, 30'000, R"({"slow_to_make":2200})")}));
  ASSERT_EQ(results.cells[0].state, CellState::Value);
  EXPECT_EQ(results.cells[0].tally,
            CountingWorkload().guesses(guesses_of(1, 1).cell)->run(0, 30'000));
}

TEST_F(SweepWorker, ARangeIsNeverCompletedWithoutAGuess) {
  const StoredSweep sweep = store_plan(*store_, plan({guesses_of(1, 1000)}));
  const auto leases = store_->claim(
      {.group = sweep.groups[0].number, .owner = "w", .max_ranges = 1, .units_per_range = 1000});
  const std::vector<jobs::Completion> none = {
      {.lease = leases.at(0), .payload = RangeTally().text(), .count = 0, .result = {}}};
  EXPECT_THROW(store_->complete(none, merge_range_payloads), StateError);
}

// Earlier versions stored a result without any guess, and finished ranges that lack some guesses.
TEST_F(SweepWorker, CellsThatLackGuessesAreNoValuesAndAreComputedAgain) {
  const SweepPlan both = plan({guesses_of(1, 1000), guesses_of(2, 1000)});
  const StoredSweep sweep = store_plan(*store_, both);
  const auto leases = store_->claim(
      {.group = sweep.groups[0].number, .owner = "w", .max_ranges = 3, .units_per_range = 600});
  ASSERT_EQ(leases.size(), 3u);  // 0 to 600 and 600 to 1000 of the first, 0 to 600 of the second
  const CountingWorkload workload;
  const std::string few =
      run_range(*workload.guesses(both.cells[1].cell), both.cells[1], 0, 100).text();
  const std::string empty = RangeTally().text();
  const jobs::Result nothing = {.kind = jobs::ResultKind::Censored,
                                .payload = R"({"tally":)" + Tally().json() +
                                           R"(,"microseconds":1,"attempts":1,"device":"cpu"})",
                                .failure = {}};
  store_->complete(
      std::vector<jobs::Completion>{{.lease = leases[0], .payload = empty, .result = {}},
                                    {.lease = leases[1], .payload = empty, .result = nothing},
                                    {.lease = leases[2], .payload = few, .result = {}}},
      merge_range_payloads);
  store_->release("w");
  const SweepResults wrong = read_results(*store_, sweep, workload);
  EXPECT_EQ(wrong.cells[0].state, CellState::Failed);
  EXPECT_EQ(wrong.cells[0].failure->kind, "lost_guesses");
  EXPECT_EQ(wrong.cells[0].failure->message, "its result is of 0 of 1000 guesses");
  // Another sweep does not reuse this result.
  EXPECT_EQ(store_plan(*store_, plan({guesses_of(1, 1000), guesses_of(5, 10)})).reused, 0);
  const std::vector<LackingCell> lacking = cells_lacking_guesses(*store_, sweep);
  ASSERT_EQ(lacking.size(), 2u);
  EXPECT_EQ(lacking[0].units, 1000);
  EXPECT_EQ(lacking[1].guesses, 100);
  EXPECT_EQ(lacking[1].units, 600);
  EXPECT_EQ(compute_again(*store_, lacking), 2);
  EXPECT_TRUE(cells_lacking_guesses(*store_, sweep).empty());
  const SweepResults right = work(both);
  for (const CellResult& cell : right.cells)
    EXPECT_EQ(cell.tally, workload.guesses(cell.cell)->run(0, 1000));
}

TEST_F(SweepWorker, RangesThatLackGuessesMakeNoValueAtTheEnd) {
  const SweepPlan one = plan({guesses_of(1, 1000)});
  const StoredSweep sweep = store_plan(*store_, one);
  const auto leases = store_->claim(
      {.group = sweep.groups[0].number, .owner = "w", .max_ranges = 1, .units_per_range = 600});
  store_->complete(
      std::vector<jobs::Completion>{
          {.lease = leases.at(0), .payload = RangeTally().text(), .result = {}}},
      merge_range_payloads);
  const SweepResults results = work(one);
  EXPECT_EQ(results.cells[0].state, CellState::Failed);
  EXPECT_EQ(results.cells[0].failure->kind, "lost_guesses");
  EXPECT_EQ(retry_failed(*store_, sweep), 1);
  EXPECT_EQ(work(one).cells[0].state, CellState::Value);
}

TEST_F(SweepWorker, AStoppedWorkerHandsInWhatItHasAndHoldsNothing) {
  const SweepPlan long_plan = plan({guesses_of(1, 40'000'000)});
  const SweepResults first = work(long_plan, 6);
  EXPECT_EQ(first.cells[0].state, CellState::Partial);
  EXPECT_GT(first.cells[0].tally.guesses, 0);
  for (const jobs::Group& group : sweep_.groups) EXPECT_TRUE(store_->leases(group.number).empty());
}

TEST_F(SweepWorker, FinishedCellsOfOtherSweepsAreTakenOverButNotOfOtherVersions) {
  work(plan({guesses_of(1, 1000), guesses_of(2, 1000)}));
  const StoredSweep wider = store_plan(*store_, plan({guesses_of(1, 1000), guesses_of(3, 1000)}));
  EXPECT_EQ(wider.added, 2);
  EXPECT_EQ(wider.reused, 1);
  const StoredSweep other =
      store_plan(*store_, plan({guesses_of(1, 1000), guesses_of(2, 1000)}, "2"));
  EXPECT_EQ(other.reused, 0);
  EXPECT_EQ(other.other_versions, (std::vector<std::string>{"1"}));
}

TEST_F(SweepWorker, ACellEndsAtItsRuleWhoeverComputedIt) {
  PlannedCell planned = guesses_of(1, 3'000'000);
  planned.stop = {.standard_error = 0.002, .accepted = 0};
  const SweepResults results = work(plan({planned}));
  EXPECT_LE(results.cells[0].standard_error(), 0.002);
  EXPECT_LT(results.cells[0].tally.guesses, 600'000);
}

TEST(WorkerNames, TellAGoneProcessFromALivingOne) {
  const std::string own = processes::process_name(::getpid());
  EXPECT_FALSE(processes::is_gone(own));
  EXPECT_TRUE(processes::is_gone(own + "0"));
  EXPECT_FALSE(processes::is_gone("other.host.1:1:1"));
  EXPECT_FALSE(processes::is_gone(""));
}

TEST(WorkerMessages, ReadBack) {
  const WorkerMessage begin{.kind = WorkerMessage::Kind::Begin, .leases = {3, 5}};
  EXPECT_EQ(WorkerMessage::parse("begin 3 5")->leases, begin.leases);
  EXPECT_EQ(begin.line(), "begin 3 5\n");
  EXPECT_EQ(WorkerMessage::parse("stored 7 8 9")->accepted, 8);
  EXPECT_EQ(WorkerMessage::parse("computed 7 8 9 10 11")->expected_microseconds, 11);
  EXPECT_FALSE(WorkerMessage::parse("computed 7 8 9"));
  EXPECT_EQ(WorkerMessage::parse("note a b")->text, "a b");
  const WorkerMessage failed{.kind = WorkerMessage::Kind::CellFailed,
                             .text = way_of({.kind = "exit", .message = "m", .exit_code = 3})};
  EXPECT_EQ(failed.line(), "cell_failed exit 3 0\n");
  EXPECT_EQ(WorkerMessage::parse("cell_failed exit 3 0")->text, failed.text);
  EXPECT_FALSE(WorkerMessage::parse("stored x"));
  EXPECT_FALSE(WorkerMessage::parse("something else"));
}

}  // namespace
}  // namespace convoy::sweep
