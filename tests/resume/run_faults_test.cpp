// SPDX-License-Identifier: Apache-2.0
//
// Tests faults of a whole run: a folder in use, figures that are not finite, a killed rank.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>

#include "convoy/core/telemetry/runs/run_history.h"
#include "load/slowdown.h"
#include "resume/train_process.h"

namespace convoy::testing {
namespace {

TEST(RunFolderInUse, TheSecondRunNamesTheHolderAndAStaleLockIsTakenOver) {
  const TrainFixture fixture;
  TrainProcess first = fixture.start("run", {"train.epochs=200"});
  ASSERT_TRUE(first.wait_until([&] { return fixture.has_event("run", "step", 1); }));
  const Ended second =
      TrainProcess(fixture.command("run", {"train.epochs=200"}), fixture.run_folder("errors"))
          .wait();
  EXPECT_EQ(second.status, 2) << second.errors;
  EXPECT_NE(second.errors.find(fmt::format("in use by process {}", first.pid())), std::string::npos)
      << second.errors;
  EXPECT_TRUE(first.running());
  first.kill_everything();
  const Ended next = fixture.run("run", {"train.epochs=1"});
  EXPECT_EQ(next.status, 0) << next.errors;
}

TEST(NotFinite, EndsWithFifteenNamesTheStepAndPublishesNothingBad) {
  const TrainFixture fixture;
  const Ended ended = fixture.run("run", {"train.learning_rate=1e30"});
  EXPECT_EQ(ended.status, 15) << ended.errors;
  const int64_t bad_step = fixture.losses("run").rbegin()->first + 1;
  EXPECT_NE(ended.errors.find(fmt::format("\"step\":{}", bad_step)), std::string::npos)
      << ended.errors;
  EXPECT_FALSE(std::filesystem::exists(fixture.run_folder("run") / "adapter"));
  EXPECT_FALSE(std::filesystem::exists(fixture.checkpoint("run", bad_step)));
}

TEST(KilledRank, TakesTheJobDownWithinTwoSecondsAndIsNamed) {
  const TrainFixture fixture;
  TrainProcess process = fixture.start("run", {"--nproc", "2", "train.epochs=200"});
  ASSERT_TRUE(process.wait_until([&] { return fixture.has_event("run", "step", 2); }));
  const std::vector<pid_t> ranks = process.ranks();
  ASSERT_EQ(ranks.size(), 2u);
  ::kill(ranks[1], SIGKILL);
  const auto killed = std::chrono::steady_clock::now();
  const Ended ended = process.wait();
  EXPECT_LT(std::chrono::steady_clock::now() - killed, testing::within(2));
  EXPECT_EQ(ended.status, 128 + SIGKILL) << ended.errors;
  EXPECT_NE(ended.errors.find("rank 1 was killed by signal 9"), std::string::npos) << ended.errors;
}

// Rank 0 is killed, so it cannot record its own end.
TEST(KilledRank, IsToldInTheRunsEventsThoughNoRankCould) {
  const TrainFixture fixture;
  TrainProcess process = fixture.start("run", {"train.epochs=200"});
  ASSERT_TRUE(process.wait_until([&] { return fixture.has_event("run", "step", 2); }));
  const std::vector<pid_t> ranks = process.ranks();
  ASSERT_EQ(ranks.size(), 1u);
  ::kill(ranks[0], SIGKILL);
  const Ended ended = process.wait();
  EXPECT_EQ(ended.status, 128 + SIGKILL) << ended.errors;
  const telemetry::RunHistory history = telemetry::read_run(fixture.run_folder("run"));
  EXPECT_EQ(history.state, telemetry::RunState::Failed);
  EXPECT_NE(history.failure.find("was killed by signal 9"), std::string::npos) << history.failure;
  EXPECT_EQ(fixture.num_events("run", "failure"), 1);
}

TEST(RefusedRun, LeavesTheEventsOfTheRunBeforeAsTheyAre) {
  const TrainFixture fixture;
  ASSERT_EQ(fixture.run("run", {"train.epochs=1"}).status, 0);
  EXPECT_EQ(fixture.run("run", {"train.epochs=2", "seed=43"}).status, 2);
  EXPECT_EQ(fixture.num_events("run", "failure"), 0);
  EXPECT_EQ(telemetry::read_run(fixture.run_folder("run")).state, telemetry::RunState::Finished);
}

}  // namespace
}  // namespace convoy::testing
