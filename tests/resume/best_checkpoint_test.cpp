// SPDX-License-Identifier: Apache-2.0
//
// Tests early stopping, the export of the best checkpoint, and the number of kept checkpoints.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "convoy/core/base/files.h"
#include "convoy/core/telemetry/logs/event_log.h"
#include "resume/train_process.h"

namespace convoy::testing {
namespace {

// The learning rate damages the model within a few steps, and there are too few steps to recover,
// so the best evaluation is not the last one.
const Settings& worsening() {
  static const Settings settings = {
      "train.eval_strategy=steps", "train.eval_steps=1", "train.learning_rate=0.2",
      "train.save_steps=1",        "train.epochs=2",     "train.lr_scheduler_type=constant"};
  return settings;
}

int64_t best_step(const TrainFixture& fixture, const std::string& name) {
  int64_t step = -1;
  double best = 1e300;
  for (const auto& event : telemetry::read_events(fixture.run_folder(name) / "events.jsonl")) {
    if (event["event"] != "eval" || event["loss"].get<double>() >= best) continue;
    best = event["loss"];
    step = event["step"];
  }
  return step;
}

TEST(BestCheckpoint, IsExportedAndKept) {
  const TrainFixture fixture;
  const Ended ended = fixture.run("run", worsening());
  ASSERT_EQ(ended.status, 0) << ended.errors;
  const int64_t best = best_step(fixture, "run");
  ASSERT_LT(best, 12) << "the fixture is meant to get worse";
  EXPECT_TRUE(fixture.weights("run") ==
              read_file(fixture.checkpoint("run", best) / "adapter_model.safetensors"));
  // save_total_limit 2 keeps two checkpoints beside the best one and the last one.
  std::vector<int64_t> kept = {best, 12};
  for (int64_t step = 11; kept.size() < 4; --step)
    if (step != best) kept.push_back(step);
  std::sort(kept.begin(), kept.end());
  EXPECT_EQ(fixture.checkpoint_steps("run"), kept);

  ASSERT_EQ(
      fixture.run("last", worsening() + Settings{"train.load_best_model_at_end=false"}).status, 0);
  EXPECT_TRUE(fixture.weights("last") ==
              read_file(fixture.checkpoint("last", 12) / "adapter_model.safetensors"));
}

TEST(EarlyStop, EndsAfterThePatienceAndStaysEndedWhenStartedAgain) {
  const Settings settings = worsening() + Settings{"train.early_stopping_patience=3"};
  const TrainFixture fixture;
  const Ended ended = fixture.run("run", settings);
  ASSERT_EQ(ended.status, 0) << ended.errors;
  const int64_t best = best_step(fixture, "run");
  const std::map<int64_t, double> losses = fixture.losses("run");
  EXPECT_EQ(losses.rbegin()->first, best + 3);
  const std::string weights = fixture.weights("run");

  const Ended again = fixture.run("run", settings);
  EXPECT_EQ(again.status, 0) << again.errors;
  EXPECT_EQ(fixture.losses("run"), losses) << "a run out of patience went on";
  EXPECT_TRUE(fixture.weights("run") == weights);
}

// The threshold decides which gain justifies continuing, and not which weights are the best.
TEST(EarlyStop, TheThresholdDoesNotChooseTheBestCheckpoint) {
  const TrainFixture fixture;
  const Ended ended =
      fixture.run("run", {"train.eval_strategy=steps", "train.eval_steps=1", "train.save_steps=1",
                          "train.lr_scheduler_type=constant", "train.early_stopping_patience=3",
                          "train.early_stopping_threshold=100"});
  ASSERT_EQ(ended.status, 0) << ended.errors;
  EXPECT_EQ(fixture.losses("run").rbegin()->first, 4) << "the first evaluation, and three after it";
  const int64_t best = best_step(fixture, "run");
  ASSERT_GT(best, 1) << "the fixture is meant to get better";
  EXPECT_TRUE(fixture.weights("run") ==
              read_file(fixture.checkpoint("run", best) / "adapter_model.safetensors"));
  EXPECT_EQ(
      nlohmann::json::parse(read_file(fixture.run_folder("run") / "metrics.json"))["best_step"],
      best);
}

}  // namespace
}  // namespace convoy::testing
