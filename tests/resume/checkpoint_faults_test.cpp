// SPDX-License-Identifier: Apache-2.0
//
// Tests damaged checkpoints, and checkpoints of a run with other settings.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "convoy/core/base/files.h"
#include "resume/train_process.h"

namespace convoy::testing {
namespace {

// Flips one bit of the last byte: the file can still be parsed, and only its hash differs.
void damage(const std::filesystem::path& file) {
  std::string bytes = read_file(file);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_file_atomic(file, bytes);
}

bool says(const Ended& ended, const std::string& words) {
  return ended.errors.find(words) != std::string::npos;
}

TEST(DamagedCheckpoint, TheOneBeforeIsUsedAndItIsSaid) {
  const TrainFixture fixture;
  ASSERT_EQ(fixture.run("unbroken", {}).status, 0);
  ASSERT_EQ(fixture.run("damaged", {}).status, 0);
  damage(fixture.checkpoint("damaged", 18) / "adapter_model.safetensors");
  const Ended resumed = fixture.run("damaged", {});
  EXPECT_EQ(resumed.status, 0) << resumed.errors;
  EXPECT_TRUE(says(resumed, "step-00000018")) << resumed.errors;
  EXPECT_TRUE(says(resumed, "damaged after saving (CRC32C")) << resumed.errors;
  EXPECT_TRUE(says(resumed, "resuming at step 17")) << resumed.errors;
  expect_same_result(fixture, "unbroken", "damaged");
}

TEST(DamagedCheckpoint, NoneLeftIsElevenAndNothingIsTouched) {
  const TrainFixture fixture;
  ASSERT_EQ(fixture.run("damaged", {"train.steps=3"}).status, 0);
  const std::vector<int64_t> steps = fixture.checkpoint_steps("damaged");
  for (const int64_t step : steps) damage(fixture.checkpoint("damaged", step) / "manifest.json");
  const Ended refused = fixture.run("damaged", {"train.steps=3"});
  EXPECT_EQ(refused.status, 11) << refused.errors;
  EXPECT_TRUE(says(refused, "--resume never")) << refused.errors;
  EXPECT_EQ(fixture.checkpoint_steps("damaged"), steps);
  EXPECT_EQ(fixture.run("damaged", {"train.steps=3", "--resume", "never"}).status, 0);
}

struct StampCase {
  std::string field;
  Settings before;
  Settings after;
  std::string saved;  // the text with both values, as in the refusal
  std::string current;
};

void PrintTo(const StampCase& stamp_case, std::ostream* stream) { *stream << stamp_case.field; }

class ChangedStamp : public ::testing::TestWithParam<StampCase> {};

TEST_P(ChangedStamp, IsRefusedByFieldWithBothValuesAndTheFlag) {
  const StampCase& stamp_case = GetParam();
  const TrainFixture fixture;
  Settings before = stamp_case.before;
  before.push_back("train.steps=2");
  Settings after = stamp_case.after;
  after.push_back("train.steps=2");
  ASSERT_EQ(fixture.run("run", before).status, 0);
  const Ended refused = fixture.run("run", after);
  EXPECT_EQ(refused.status, 2) << refused.errors;
  EXPECT_TRUE(says(refused, stamp_case.field + ": the checkpoint has `" + stamp_case.saved +
                                "`, this run `" + stamp_case.current + "`"))
      << refused.errors;
  const bool decides_state = stamp_case.field == "optimizer_states";
  EXPECT_EQ(says(refused, "--force-stamp " + stamp_case.field), !decides_state) << refused.errors;
  if (decides_state) {
    after.insert(after.end(), {"--force-stamp", stamp_case.field});
    EXPECT_EQ(fixture.run("run", after).status, 2) << "its state cannot be read so";
  }
  EXPECT_EQ(fixture.run("run", before).status, 0) << "the refusal must leave the run as it was";
}

INSTANTIATE_TEST_SUITE_P(
    Fields, ChangedStamp,
    ::testing::Values(StampCase{"seed", {}, {"seed=8"}, "7", "8"},
                      StampCase{"dtype", {}, {"train.bf16=true"}, "fp32", "bf16"},
                      StampCase{"lora.r", {}, {"tuning.lora.r=8"}, "4", "8"},
                      StampCase{"optimizer_states", {}, {"train.optim=adamw_8bit"}, "fp32", "int8"},
                      StampCase{"packing", {}, {"train.packing=true"}, "off", "on"},
                      StampCase{"tuning", {}, {"tuning.mode=full"}, "lora", "full"}),
    [](const auto& instance) {
      std::string name = instance.param.field;
      std::replace(name.begin(), name.end(), '.', '_');
      return name;
    });

TEST(ChangedData, AnEditedRowIsRefusedByHashAndForcedOnWish) {
  const TrainFixture fixture;
  ASSERT_EQ(fixture.run("run", {"train.steps=2"}).status, 0);
  std::string rows = read_file(fixture.rows());
  rows.replace(rows.find("completion"), 14, "completion\":\"9");
  write_file_atomic(fixture.rows(), rows);
  const Ended refused = fixture.run("run", {"train.steps=4"});
  EXPECT_EQ(refused.status, 2) << refused.errors;
  EXPECT_TRUE(says(refused, "data: the checkpoint has `")) << refused.errors;
  EXPECT_TRUE(says(refused, "--force-stamp data")) << refused.errors;
  const Ended forced = fixture.run("run", {"train.steps=4", "--force-stamp", "data"});
  EXPECT_EQ(forced.status, 0) << forced.errors;
  EXPECT_TRUE(says(forced, "; forced")) << forced.errors;
  EXPECT_TRUE(says(forced, "resuming at step 2")) << forced.errors;
}

TEST(ChangedModel, OtherWeightsUnderTheSameNameAreRefused) {
  const TrainFixture fixture;
  const std::filesystem::path model = fixture.run_folder("model");
  std::filesystem::copy(
      std::filesystem::path(std::getenv("CONVOY_SOURCE_DIR")) / "examples/tally-3m", model);
  const Settings settings = {"train.steps=2", "model.name=" + model.string()};
  ASSERT_EQ(fixture.run("run", settings).status, 0);
  damage(model / "model.safetensors");
  const Ended refused = fixture.run("run", settings);
  EXPECT_EQ(refused.status, 2) << refused.errors;
  EXPECT_TRUE(says(refused, "model: the checkpoint has `")) << refused.errors;
  EXPECT_TRUE(says(refused, "--force-stamp model")) << refused.errors;
}

TEST(ChangedLearningRate, IsAppliedAndSaid) {
  const TrainFixture fixture;
  ASSERT_EQ(fixture.run("run", {"train.steps=2"}).status, 0);
  const Ended resumed = fixture.run("run", {"train.steps=4", "train.learning_rate=5e-4"});
  EXPECT_EQ(resumed.status, 0) << resumed.errors;
  EXPECT_TRUE(says(resumed, "learning_rate: the checkpoint has `0.002`, this run `0.0005`"))
      << resumed.errors;
  ASSERT_EQ(fixture.run("old_rate", {"train.steps=4"}).status, 0);
  EXPECT_TRUE(fixture.weights("run") != fixture.weights("old_rate"))
      << "the new rate had no effect";
}

TEST(ChangedSettings, AreAppliedAndSaidOneByOne) {
  const TrainFixture fixture;
  ASSERT_EQ(fixture.run("run", {"train.steps=2"}).status, 0);
  const Ended resumed = fixture.run(
      "run", {"train.steps=4", "train.adam_beta1=0.8", "train.adam_beta2=0.99",
              "train.adam_epsilon=0.001", "train.max_grad_norm=0.5", "train.warmup_ratio=0.5",
              "train.warmup_steps=3", "train.early_stopping_patience=9", "parallel.bucket_mb=3"});
  ASSERT_EQ(resumed.status, 0) << resumed.errors;
  for (const char* change :
       {"adam_beta1: the checkpoint has `0.9`, this run `0.8`; applied",
        "adam_beta2: the checkpoint has `0.999`, this run `0.99`; applied",
        "adam_epsilon: the checkpoint has `1.0e-08`, this run `0.001`; applied",
        "max_grad_norm: the checkpoint has `1`, this run `0.5`; applied",
        "warmup_ratio: the checkpoint has `0.06`, this run `0.5`; applied",
        "warmup_steps: the checkpoint has `0`, this run `3`; applied",
        "early_stopping_patience: the checkpoint has `0`, this run `9`; applied",
        "parallel.bucket_mb: the checkpoint has `25`, this run `3`; applied"})
    EXPECT_TRUE(says(resumed, change)) << change << "\n" << resumed.errors;
  ASSERT_EQ(fixture.run("old", {"train.steps=4"}).status, 0);
  EXPECT_TRUE(fixture.weights("run") != fixture.weights("old")) << "the changes had no effect";
  const Ended same = fixture.run("old", {"train.steps=4"});
  EXPECT_FALSE(says(same, "the checkpoint has")) << same.errors;
}

}  // namespace
}  // namespace convoy::testing
