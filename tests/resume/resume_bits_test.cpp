// SPDX-License-Identifier: Apache-2.0
//
// A run that was killed and started again with the same command ends with the bits of an unbroken
// run.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "convoy/core/base/files.h"
#include "resume/train_process.h"

namespace convoy::testing {
namespace {

struct ResumeCase {
  std::string name;
  std::vector<std::string> settings;
  std::vector<int64_t> kill_after;  // one kill after each of these steps
  std::string await = "step";       // the event of that step that triggers the kill
};

void PrintTo(const ResumeCase& resume_case, std::ostream* stream) { *stream << resume_case.name; }

class ResumeBits : public ::testing::TestWithParam<ResumeCase> {};

TEST_P(ResumeBits, KilledAndResumedEqualsUnbroken) {
  const ResumeCase& resume_case = GetParam();
  const TrainFixture fixture;
  const Ended unbroken = fixture.run("unbroken", resume_case.settings);
  ASSERT_EQ(unbroken.status, 0) << unbroken.errors;
  for (const int64_t step : resume_case.kill_after) {
    TrainProcess process = fixture.start("killed", resume_case.settings);
    ASSERT_TRUE(process.wait_until([&] {
      return fixture.has_event("killed", resume_case.await, step);
    })) << process.wait().errors;
    ASSERT_TRUE(process.running()) << "the kill must hit a run at work";
    process.kill_everything();
  }
  const Ended resumed = fixture.run("killed", resume_case.settings);
  ASSERT_EQ(resumed.status, 0) << resumed.errors;
  EXPECT_NE(resumed.errors.find("resuming at step"), std::string::npos) << resumed.errors;
  expect_same_result(fixture, "unbroken", "killed");
}

// The run mixes text and conversations, in rows and in blocks, reads the smaller sets again, and is
// killed in its second epoch.
TEST(ResumeBitsOfAMix, KilledAndResumedEqualsUnbroken) {
  for (const char* packing : {"false", "true"}) {
    const TrainFixture fixture;
    std::string texts;
    for (int row = 0; row < 9; ++row)
      texts += fmt::format("{{\"text\": \"{} and {} are {}\"}}\n", row, row, 2 * row);
    const std::filesystem::path text = fixture.rows().parent_path() / "text.jsonl";
    write_file_atomic(text, texts);
    const std::vector<std::string> settings = {
        "task=mixed",
        fmt::format("datasets=[{{name: chat, path: {}, type: chat, weight: 3}}, "
                    "{{name: text, path: {}, type: cpt, weight: 2, val_ratio: 0.3}}]",
                    fixture.rows().string(), text.string()),
        fmt::format("train.packing={}", packing), "train.batch_size=1", "train.epochs=3"};
    const Ended unbroken = fixture.run("unbroken", settings);
    ASSERT_EQ(unbroken.status, 0) << unbroken.errors;
    EXPECT_NE(unbroken.errors.find("mix: chat "), std::string::npos) << unbroken.errors;
    TrainProcess process = fixture.start("killed", settings);
    ASSERT_TRUE(process.wait_until([&] { return fixture.has_event("killed", "step", 9); }))
        << process.wait().errors;
    ASSERT_TRUE(process.running()) << "the kill must hit a run at work";
    process.kill_everything();
    const Ended resumed = fixture.run("killed", settings);
    ASSERT_EQ(resumed.status, 0) << resumed.errors;
    expect_same_result(fixture, "unbroken", "killed");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Matrix, ResumeBits,
    ::testing::Values(
        ResumeCase{"lora_mid_epoch", {}, {3}}, ResumeCase{"lora_epoch_two", {}, {8}},
        ResumeCase{"lora_epoch_three", {}, {14}},
        ResumeCase{"killed_in_each_epoch", {}, {2, 9, 16}},
        ResumeCase{"at_the_end_of_an_epoch", {}, {6}, "checkpoint"},
        ResumeCase{"steps_since_the_save_are_redone", {"train.save_steps=4"}, {7}},
        ResumeCase{"packed", {"train.packing=true", "train.batch_size=1", "train.epochs=6"}, {5}},
        ResumeCase{"two_ranks", {"--nproc", "2"}, {2, 5}},
        ResumeCase{"two_ranks_packed",
                   {"--nproc", "2", "train.packing=true", "train.batch_size=1", "train.epochs=8"},
                   {4}},
        ResumeCase{"dora_checkpointed_blocks",
                   {"tuning.lora.use_dora=true", "train.gradient_checkpointing=true"},
                   {8}},
        ResumeCase{"lora_bf16", {"train.bf16=true"}, {8}},
        ResumeCase{"full", {"tuning.mode=full", "train.epochs=2"}, {4, 8}},
        ResumeCase{"full_bf16", {"tuning.mode=full", "train.bf16=true", "train.epochs=2"}, {7}},
        ResumeCase{"full_two_ranks", {"tuning.mode=full", "--nproc", "2"}, {4}},
        ResumeCase{"full_8bit_two_ranks",
                   {"tuning.mode=full", "train.optim=adamw_8bit", "--nproc", "2"},
                   {4}},
        ResumeCase{"full_bf16_without_masters",
                   {"tuning.mode=full", "train.bf16=true", "train.optimizer_state_dtype=bf16",
                    "train.master_weights=none", "train.learning_rate=1e-3"},
                   {7}},
        ResumeCase{"lora_plus_with_noise",
                   {"tuning.lora.loraplus_lr_ratio=4", "train.neftune_noise_alpha=5",
                    "train.gradient_checkpointing=true", "train.activation_offload=cpu"},
                   {5}},
        ResumeCase{"zero2_8bit_two_ranks",
                   {"tuning.mode=full", "train.optim=paged_adamw_8bit", "--nproc", "2",
                    "parallel.strategy=zero2"},
                   {4}},
        ResumeCase{"evaluating", {"train.eval_strategy=steps", "train.eval_steps=2"}, {5, 10}}),
    [](const auto& instance) { return instance.param.name; });

// Kills the run after a step's checkpoint is written, between the micro-batches of the next step.
TEST(ResumeMidAccumulation, KilledAndResumedEqualsUnbroken) {
  const std::vector<std::string> settings = {"train.batch_size=1", "train.grad_accum=8"};
  const TrainFixture fixture;
  ASSERT_EQ(fixture.run("unbroken", settings).status, 0);
  int64_t num_killed_inside = 0;
  for (const int64_t step : {1, 3, 5, 7}) {
    TrainProcess process = fixture.start("killed", settings);
    ASSERT_TRUE(process.wait_until([&] { return fixture.has_event("killed", "checkpoint", step); }))
        << process.wait().errors;
    std::this_thread::sleep_for(std::chrono::milliseconds(10 * step));
    process.kill_everything();
    num_killed_inside += fixture.has_event("killed", "step", step + 1) ? 0 : 1;
  }
  EXPECT_GE(num_killed_inside, 1) << "no kill fell into an accumulation";
  ASSERT_EQ(fixture.run("killed", settings).status, 0);
  expect_same_result(fixture, "unbroken", "killed");
}

// A kill may come after the last step, while the result is written. The next start must write the
// result again.
TEST(ResumeFinished, AFinishedRunStartedAgainWritesTheSameResult) {
  const TrainFixture fixture;
  ASSERT_EQ(fixture.run("unbroken", {}).status, 0);
  ASSERT_EQ(fixture.run("again", {}).status, 0);
  std::filesystem::remove_all(fixture.run_folder("again") / "adapter");
  const Ended again = fixture.run("again", {});
  EXPECT_EQ(again.status, 0) << again.errors;
  expect_same_result(fixture, "unbroken", "again");
}

}  // namespace
}  // namespace convoy::testing
