// SPDX-License-Identifier: Apache-2.0
//
// A run on good and bad answers that was killed and started again ends with the same bits, and its
// evaluation equals the evaluation of `convoy eval`.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "convoy/core/base/files.h"
#include "resume/preference_runs.h"

namespace convoy::testing {
namespace {

// Returns settings with 13 sums, every third one wrong: 4 steps an epoch, in another order in each
// epoch.
Settings unpaired_settings(const TrainFixture& fixture, const Settings& more) {
  std::string rows;
  for (int row = 0; row < 13; ++row)
    rows += fmt::format(
        "{{\"prompt\": \"What is {} + {}? \", \"completion\": \"{}\", \"label\": {}}}\n", row,
        2 * row, row % 3 == 0 ? 3 * row + 7 : 3 * row, row % 3 != 0);
  return compared_settings(fixture, "kto", rows,
                           Settings{"train.metric_for_best_model=eval_loss"} + more);
}

class UnpairedRuns : public ::testing::TestWithParam<const char*> {};

TEST_P(UnpairedRuns, KilledAndResumedEqualsUnbroken) {
  const TrainFixture fixture;
  const Settings settings =
      unpaired_settings(fixture, {std::string("tuning.mode=") + GetParam(), "train.epochs=3"});
  BrokenRun ends;
  expect_resumed_equals_unbroken(fixture, settings, ends);
  EXPECT_NE(ends.unbroken.errors.find("36 rows of train with other answers, 36 computed now"),
            std::string::npos)
      << ends.unbroken.errors;
  EXPECT_EQ(ends.resumed.errors.find("computed now"), std::string::npos) << ends.resumed.errors;

  // `convoy eval` repeats the last evaluation, which measured the exported model.
  const Ended last = fixture.run("last", settings + Settings{"train.load_best_model_at_end=false"});
  ASSERT_EQ(last.status, 0) << last.errors;
  const nlohmann::json found = evaluated(fixture, "last");
  const double wanted = fixture.evaluation_losses("last").rbegin()->second;
  EXPECT_NEAR(found.at("loss").get<double>(), wanted, 1e-6);
  EXPECT_EQ(found.at("rows"), 13);
  for (const char* const figure : {"kl", "rewards/margins", "logps/chosen"})
    EXPECT_TRUE(found.contains(figure)) << found;
}
INSTANTIATE_TEST_SUITE_P(Modes, UnpairedRuns, ::testing::Values("lora", "full"),
                         [](const auto& one) { return std::string(one.param); });

class MeasuredUnpairedRuns : public ::testing::TestWithParam<Settings> {};

// The search for a batch size measures steps before their answers are paired and scored.
TEST_P(MeasuredUnpairedRuns, AreThoseOfTheirNumber) {
  const TrainFixture fixture;
  const Settings settings = unpaired_settings(
      fixture, GetParam() + Settings{"data.cache_dir=none", "train.steps=4", "train.grad_accum=1"});
  const Settings measured = settings + Settings{"train.batch_size=auto"};
  const Ended chosen = fixture.run("chosen", measured);
  ASSERT_EQ(chosen.status, 0) << chosen.errors;
  const nlohmann::json metrics =
      nlohmann::json::parse(read_file(fixture.run_folder("chosen") / "metrics.json"));
  const int64_t rows = metrics["per_device_train_batch_size"];
  EXPECT_GT(rows, 1);
  const Ended written =
      fixture.run("written", settings + Settings{fmt::format("train.batch_size={}", rows)});
  ASSERT_EQ(written.status, 0) << written.errors;
  expect_same_result(fixture, "written", "chosen");
  EXPECT_EQ(fixture.evaluation_losses("written"), fixture.evaluation_losses("chosen"));
  const Ended on = fixture.run("chosen", measured + Settings{"train.steps=5"});
  ASSERT_EQ(on.status, 0) << on.errors;
  EXPECT_NE(on.errors.find(fmt::format("batch_size {}, from the checkpoint", rows)),
            std::string::npos)
      << on.errors;
}
INSTANTIATE_TEST_SUITE_P(
    Modes, MeasuredUnpairedRuns,
    ::testing::Values(Settings{"tuning.mode=lora"}, Settings{"tuning.mode=full"},
                      Settings{"tuning.mode=lora", "parallel.strategy=zero3", "--nproc", "2"}));

TEST(UnpairedRunsOfOtherWeights, AreRefused) {
  const TrainFixture fixture;
  const Settings settings = unpaired_settings(fixture, {"train.epochs=1"});
  ASSERT_EQ(fixture.run("run", settings).status, 0);
  const Ended ended =
      fixture.run("run", settings + Settings{"train.epochs=2", "preference.desirable_weight=2"});
  EXPECT_EQ(ended.status, 2) << ended.errors;
  EXPECT_NE(ended.errors.find("objective"), std::string::npos) << ended.errors;
}

}  // namespace
}  // namespace convoy::testing
