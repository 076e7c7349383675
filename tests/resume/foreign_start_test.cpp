// SPDX-License-Identifier: Apache-2.0
//
// Tests checkpoints of other trainers: training starts from their weights and does not use their
// state, and messages say so.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "convoy/core/base/files.h"
#include "resume/train_process.h"

namespace convoy::testing {
namespace {

namespace fs = std::filesystem;

const Settings kStill = {"train.learning_rate=0", "train.steps=1", "train.weight_decay=0"};

bool contains(const Ended& ended, const std::string& text) {
  return ended.errors.find(text) != std::string::npos;
}

// Adds the files that transformers' Trainer writes beside the weights.
void add_trainer_state(const fs::path& folder) {
  write_file_atomic(folder / "optimizer.pt", "a pickle");
  write_file_atomic(folder / "trainer_state.json", "{}");
}

class ForeignStart : public ::testing::Test {
 protected:
  fs::path folder() const { return fixture_.run_folder("checkpoint-500"); }

  TrainFixture fixture_;
};

TEST_F(ForeignStart, AnAdapterIsGoneOnWithOnItsBase) {
  ASSERT_EQ(fixture_.run("first", {"train.steps=2"}).status, 0);
  fs::copy(fixture_.run_folder("first") / "adapter", folder());
  add_trainer_state(folder());
  const std::string model = fmt::format("model.name={}", folder().string());

  const Ended ended = fixture_.run("second", kStill + Settings{model});
  ASSERT_EQ(ended.status, 0) << ended.errors;
  EXPECT_TRUE(contains(ended, "is a PEFT adapter of")) << ended.errors;
  EXPECT_TRUE(contains(ended, "its optimizer, schedule and data position are not used"))
      << ended.errors;
  EXPECT_TRUE(fixture_.weights("second") == fixture_.weights("first"));

  const Ended whole = fixture_.run("whole", {model, "tuning.mode=full"});
  EXPECT_EQ(whole.status, 2) << whole.errors;
  EXPECT_TRUE(contains(whole, "convoy models merge")) << whole.errors;
}

TEST_F(ForeignStart, AWholeModelIsLoadedWithoutItsState) {
  fs::copy(fs::path(std::getenv("CONVOY_SOURCE_DIR")) / "examples/tally-3m", folder());
  add_trainer_state(folder());
  const std::string model = fmt::format("model.name={}", folder().string());
  const Ended ended = fixture_.run("run", kStill + Settings{model});
  ASSERT_EQ(ended.status, 0) << ended.errors;
  EXPECT_TRUE(contains(ended, "is a checkpoint of transformers' Trainer")) << ended.errors;
}

TEST_F(ForeignStart, NoStateOfOthersIsResumed) {
  fs::create_directories(folder());
  add_trainer_state(folder());
  const std::string resume = fmt::format("train.resume_from_checkpoint={}", folder().string());
  const Ended trainers = fixture_.run("trainers", {resume});
  EXPECT_EQ(trainers.status, 11) << trainers.errors;
  EXPECT_TRUE(contains(trainers, fmt::format("model.name={}", folder().string())))
      << trainers.errors;

  fs::create_directories(folder() / "global_step500");
  write_file_atomic(folder() / "global_step500/mp_rank_00_model_states.pt", "a pickle");
  const Ended deepspeeds = fixture_.run("deepspeeds", {resume});
  EXPECT_EQ(deepspeeds.status, 10) << deepspeeds.errors;
  EXPECT_TRUE(contains(deepspeeds, "zero_to_fp32.py")) << deepspeeds.errors;
}

}  // namespace
}  // namespace convoy::testing
