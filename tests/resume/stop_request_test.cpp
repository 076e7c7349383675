// SPDX-License-Identifier: Apache-2.0
//
// A run that is asked to stop finishes its step, saves and ends with 75. A second request ends it
// at once with 143.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "convoy/core/base/files.h"
#include "load/slowdown.h"
#include "resume/train_process.h"

namespace convoy::testing {
namespace {

// Two pending signals with the same number count as one, so signals are sent at this distance.
constexpr std::chrono::milliseconds kBetweenSignals{50};

class StopRequest : public ::testing::TestWithParam<Settings> {};

TEST_P(StopRequest, FinishesTheStepSavesAndLosesNothing) {
  Settings settings = GetParam();
  settings.push_back("train.save_steps=1000");  // saves only at the stop and at the end
  const TrainFixture fixture;
  ASSERT_EQ(fixture.run("unbroken", settings).status, 0);

  TrainProcess process = fixture.start("stopped", settings);
  ASSERT_TRUE(process.wait_until([&] { return fixture.has_event("stopped", "step", 4); }));
  process.signal(SIGTERM);
  const Ended stopped = process.wait();
  EXPECT_EQ(stopped.status, 75) << stopped.errors;
  EXPECT_NE(stopped.errors.find("stopped on request"), std::string::npos) << stopped.errors;
  const int64_t last_step = fixture.losses("stopped").rbegin()->first;
  EXPECT_EQ(fixture.checkpoint_steps("stopped"), std::vector<int64_t>{last_step});
  EXPECT_LE(last_step, 6) << "the request waited for more than a step boundary";

  const Ended resumed = fixture.run("stopped", settings);
  ASSERT_EQ(resumed.status, 0) << resumed.errors;
  EXPECT_NE(resumed.errors.find(fmt::format("resuming at step {} ", last_step)), std::string::npos)
      << resumed.errors;
  expect_same_result(fixture, "unbroken", "stopped");
}

INSTANTIATE_TEST_SUITE_P(Ranks, StopRequest,
                         ::testing::Values(Settings{}, Settings{"--nproc", "2"}));

struct StopAtEvaluation {
  std::string name;
  Settings settings;
  int64_t signal_after = 2;  // the signal is sent after the row of this step
};

void PrintTo(const StopAtEvaluation& stop, std::ostream* stream) { *stream << stop.name; }

class StopRequestAtEvaluation : public ::testing::TestWithParam<StopAtEvaluation> {};

// An evaluation is due after step 2 and takes long. A user who stops the run during it does not
// wait for its end.
TEST_P(StopRequestAtEvaluation, SavesWithoutItAndTheNextRunEvaluates) {
  const TrainFixture fixture;
  fixture.set_validation_rows(400);
  Settings settings = {"train.batch_size=1", "train.grad_accum=16",     "train.eval_strategy=steps",
                       "train.eval_steps=2", "train.eval_batch_size=1", "train.save_steps=1000"};
  settings.insert(settings.end(), GetParam().settings.begin(), GetParam().settings.end());
  ASSERT_EQ(fixture.run("unbroken", settings).status, 0);

  TrainProcess process = fixture.start("stopped", settings);
  ASSERT_TRUE(process.wait_until(
      [&] { return fixture.has_event("stopped", "step", GetParam().signal_after); }));
  process.signal(SIGTERM);
  const Ended stopped = process.wait();
  ASSERT_EQ(stopped.status, 75) << stopped.errors;
  EXPECT_EQ(fixture.checkpoint_steps("stopped"), std::vector<int64_t>{2});
  EXPECT_EQ(fixture.num_events("stopped", "eval"), 0) << "the stop waited for an evaluation";

  const Ended resumed = fixture.run("stopped", settings);
  ASSERT_EQ(resumed.status, 0) << resumed.errors;
  EXPECT_EQ(fixture.evaluation_losses("stopped"), fixture.evaluation_losses("unbroken"));
  expect_same_result(fixture, "unbroken", "stopped");
  const auto figures = [&](const std::string& name) {
    return nlohmann::json::parse(read_file(fixture.run_folder(name) / "metrics.json"));
  };
  for (const char* figure : {"eval_loss", "best_eval_loss", "best_step", "step"})
    EXPECT_EQ(figures("stopped")[figure], figures("unbroken")[figure]) << figure;
}

INSTANTIATE_TEST_SUITE_P(
    Moments, StopRequestAtEvaluation,
    ::testing::Values(StopAtEvaluation{"within", {"train.steps=3", "train.final_eval=false"}},
                      StopAtEvaluation{"before", {"train.steps=3", "train.final_eval=false"}, 1},
                      StopAtEvaluation{"last_step", {"train.steps=2"}},
                      StopAtEvaluation{"two_ranks", {"train.steps=2", "--nproc", "2"}}),
    [](const auto& instance) { return instance.param.name; });

TEST(StopRequestNot, UserSignal2EndsNothing) {
  const TrainFixture fixture;
  TrainProcess process = fixture.start("run", {"--nproc", "2"});
  ASSERT_TRUE(process.wait_until([&] { return fixture.has_event("run", "step", 2); }));
  process.signal(SIGUSR2);
  const Ended ended = process.wait();
  EXPECT_EQ(ended.status, 0) << ended.errors;
}

TEST(FinishedRun, StartedAgainKeepsItsFiguresAndSaysThatNothingIsLeft) {
  const TrainFixture fixture;
  ASSERT_EQ(fixture.run("run", {}).status, 0);
  const auto figures = [&] {
    return nlohmann::json::parse(read_file(fixture.run_folder("run") / "metrics.json"));
  };
  const nlohmann::json first = figures();
  EXPECT_GT(first["train_samples_per_second"], 0.0);
  const Ended again = fixture.run("run", {});
  EXPECT_EQ(again.status, 0) << again.errors;
  EXPECT_NE(again.errors.find("the run is complete at step 18: "), std::string::npos)
      << again.errors;
  EXPECT_NE(again.errors.find("to train on"), std::string::npos) << again.errors;
  EXPECT_EQ(again.errors.find("step 18/18"), std::string::npos) << again.errors;
  EXPECT_EQ(figures(), first);
}

// A job system may signal every process of the job, and the launcher forwards its own signal. Both
// count as one request.
TEST(StopRequestToAll, SignalledRanksAndLauncherStopOnce) {
  const TrainFixture fixture;
  TrainProcess process = fixture.start("stopped", {"--nproc", "2", "train.save_steps=1000"});
  ASSERT_TRUE(process.wait_until([&] { return fixture.has_event("stopped", "step", 3); }));
  for (const pid_t rank : process.ranks()) ::kill(rank, SIGTERM);
  std::this_thread::sleep_for(kBetweenSignals);
  process.signal(SIGTERM);
  const Ended stopped = process.wait();
  EXPECT_EQ(stopped.status, 75) << stopped.errors;
  EXPECT_EQ(fixture.checkpoint_steps("stopped").size(), 1u);
}

TEST(StopRequestTwice, EndsAtOnceAndThePreviousCheckpointIsIntact) {
  // Steps have many micro-batches, so that the second request comes within a step.
  const Settings settings = {"train.batch_size=1", "train.grad_accum=23", "train.epochs=200",
                             "train.save_steps=1"};
  const TrainFixture fixture;
  TrainProcess process = fixture.start("stopped", settings);
  ASSERT_TRUE(process.wait_until([&] { return fixture.has_event("stopped", "checkpoint", 1); }))
      << process.wait().errors;
  process.signal(SIGTERM);
  std::this_thread::sleep_for(kBetweenSignals);
  process.signal(SIGTERM);
  const auto asked = std::chrono::steady_clock::now();
  const Ended stopped = process.wait();
  EXPECT_EQ(stopped.status, 143) << stopped.errors;
  EXPECT_LT(std::chrono::steady_clock::now() - asked, testing::within(1));
  EXPECT_NE(stopped.errors.find("are not saved; go on with: convoy train "), std::string::npos)
      << stopped.errors;
  EXPECT_EQ(fixture.checkpoint_steps("stopped"), std::vector<int64_t>{1});

  TrainProcess resumed = fixture.start("stopped", settings);
  EXPECT_TRUE(resumed.wait_until([&] { return fixture.num_events("stopped", "start") == 2; }));
  resumed.kill_everything();
  EXPECT_FALSE(fixture.has_event("stopped", "failure", 1));
}

}  // namespace
}  // namespace convoy::testing
