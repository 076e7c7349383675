// SPDX-License-Identifier: Apache-2.0
//
// Answers that are called good or bad: a run that was killed and started again ends with the same
// bits, and its evaluation is that of `convoy eval`.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "convoy/core/base/files.h"
#include "files/run_script.h"
#include "resume/train_process.h"

namespace convoy::testing {
namespace {

namespace fs = std::filesystem;

// 13 sums, every third one wrong: 4 steps an epoch, in another order each time.
Settings unpaired_settings(const TrainFixture& fixture, const Settings& more) {
  std::string rows;
  for (int row = 0; row < 13; ++row)
    rows += fmt::format(
        "{{\"prompt\": \"What is {} + {}? \", \"completion\": \"{}\", \"label\": {}}}\n", row,
        2 * row, row % 3 == 0 ? 3 * row + 7 : 3 * row, row % 3 != 0);
  const fs::path folder = fixture.rows().parent_path();
  write_file_atomic(folder / "judged.jsonl", rows);
  return Settings{"task=kto",
                  "data.train_path=" + (folder / "judged.jsonl").string(),
                  "data.val_path=" + (folder / "judged.jsonl").string(),
                  "data.cache_dir=" + (folder / "cache").string(),
                  "train.eval_strategy=steps",
                  "train.eval_steps=4",
                  "train.metric_for_best_model=eval_loss"} +
         more;
}

class UnpairedRuns : public ::testing::TestWithParam<const char*> {};

TEST_P(UnpairedRuns, KilledAndResumedEqualsUnbroken) {
  const TrainFixture fixture;
  const Settings settings =
      unpaired_settings(fixture, {std::string("tuning.mode=") + GetParam(), "train.epochs=3"});
  const Ended unbroken = fixture.run("unbroken", settings);
  ASSERT_EQ(unbroken.status, 0) << unbroken.errors;
  EXPECT_NE(unbroken.errors.find("36 rows of train with other answers, 36 computed now"),
            std::string::npos)
      << unbroken.errors;
  TrainProcess process = fixture.start("killed", settings);
  ASSERT_TRUE(process.wait_until([&] { return fixture.has_event("killed", "step", 6); }))
      << process.wait().errors;
  ASSERT_TRUE(process.running()) << "the kill must hit a run at work";
  process.kill_everything();
  const Ended resumed = fixture.run("killed", settings);
  ASSERT_EQ(resumed.status, 0) << resumed.errors;
  EXPECT_NE(resumed.errors.find("resuming at step"), std::string::npos) << resumed.errors;
  EXPECT_EQ(resumed.errors.find("computed now"), std::string::npos) << resumed.errors;
  expect_same_result(fixture, "unbroken", "killed");
  EXPECT_EQ(fixture.evaluation_losses("unbroken"), fixture.evaluation_losses("killed"));

  // The last evaluation, of the model that the run made, is measured again.
  const Ended last = fixture.run("last", settings + Settings{"train.load_best_model_at_end=false"});
  ASSERT_EQ(last.status, 0) << last.errors;
  const fs::path run = fixture.run_folder("last");
  const bool full = std::string(GetParam()) == "full";
  const ScriptEnd end = run_script(
      fixture.rows().parent_path(),
      fmt::format("'{}/convoy' eval '{}' --{} '{}' --split val --dtype fp32 --output-dir results "
                  "2>&1",
                  std::getenv("CONVOY_BIN_DIR"), (run / "config.yaml").string(),
                  full ? "model" : "adapter", (run / (full ? "model" : "adapter")).string()));
  ASSERT_EQ(end.code, 0) << end.out;
  const auto found =
      nlohmann::json::parse(read_file(fixture.rows().parent_path() / "results/metrics.json"));
  const double wanted = fixture.evaluation_losses("last").rbegin()->second;
  EXPECT_NEAR(found.at("loss").get<double>(), wanted, 1e-6) << end.out;
  EXPECT_EQ(found.at("rows"), 13);
  for (const char* const figure : {"kl", "rewards/margins", "logps/chosen"})
    EXPECT_TRUE(found.contains(figure)) << found;
}
INSTANTIATE_TEST_SUITE_P(Modes, UnpairedRuns, ::testing::Values("lora", "full"),
                         [](const auto& one) { return std::string(one.param); });

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
