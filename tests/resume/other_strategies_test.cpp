// SPDX-License-Identifier: Apache-2.0
//
// A run continues with another strategy and another number of ranks. Every strategy reads
// checkpoints in pieces and whole checkpoints.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "convoy/core/base/files.h"
#include "resume/train_process.h"

namespace convoy::testing {
namespace {

struct Leg {
  const char* strategy;
  const char* ranks;
};

Settings with_leg(Settings settings, const Leg& leg) {
  settings.insert(settings.end(),
                  {"--nproc", leg.ranks, fmt::format("parallel.strategy={}", leg.strategy),
                   "parallel.keep_whole_below=0"});
  return settings;
}

// Stops the run in every leg except the last, which finishes it. Compares it with a ddp run without
// a stop, on the ranks of the first leg, whose global batch remains in force. Stops come in the
// middle of epochs, and only stops save a checkpoint.
void expect_one_run(const Settings& mode, const std::vector<Leg>& legs) {
  const TrainFixture fixture;
  Settings settings = mode;
  settings.insert(settings.end(),
                  {"train.epochs=6", "train.eval_strategy=epoch", "train.save_steps=1000"});
  const Ended unbroken = fixture.run("unbroken", with_leg(settings, {"ddp", legs.front().ranks}));
  ASSERT_EQ(unbroken.status, 0) << unbroken.errors;
  int64_t stop_after = 3;
  for (size_t leg = 0; leg + 1 < legs.size(); ++leg) {
    TrainProcess process = fixture.start("run", with_leg(settings, legs[leg]));
    EXPECT_TRUE(process.wait_until([&] { return fixture.has_event("run", "step", stop_after); }));
    process.signal(SIGTERM);
    const Ended stopped = process.wait();
    ASSERT_EQ(stopped.status, 75) << legs[leg].strategy << ": " << stopped.errors;
    stop_after = fixture.losses("run").rbegin()->first + 3;
  }
  const Ended ended = fixture.run("run", with_leg(settings, legs.back()));
  ASSERT_EQ(ended.status, 0) << ended.errors;
  ASSERT_EQ(fixture.num_events("run", "start"), std::ssize(legs));
  for (const auto& [wanted, found] :
       {std::pair{fixture.losses("unbroken"), fixture.losses("run")},
        std::pair{fixture.evaluation_losses("unbroken"), fixture.evaluation_losses("run")}}) {
    ASSERT_EQ(wanted.size(), found.size());
    for (const auto& [step, loss] : wanted)
      EXPECT_NEAR(found.at(step), loss, 1e-4 * std::max(1.0, loss)) << "step " << step;
  }
}

const Settings kFull = {"tuning.mode=full", "train.learning_rate=1e-3"};

TEST(OtherStrategies, PiecesAreReadByMoreRanksAndByFewer) {
  expect_one_run(kFull, {{"zero3", "2"}, {"zero3", "4"}, {"zero3", "3"}});
}

TEST(OtherStrategies, WholeCheckpointsBecomePiecesAndWholeAgain) {
  expect_one_run(kFull, {{"ddp", "2"}, {"zero3", "3"}, {"zero2", "2"}, {"none", "1"}});
}

// The pieces of ranks begin at blocks of 8-bit moments, so no block belongs to two ranks.
TEST(OtherStrategies, MomentsOfEightBitsAreCutAtTheirBlocks) {
  Settings settings = kFull;
  settings.emplace_back("train.optim=adamw_8bit");
  expect_one_run(settings, {{"zero3", "2"}, {"ddp", "3"}, {"zero1", "4"}, {"none", "1"}});
}

TEST(OtherStrategies, OfAnAdapterToo) {
  // There is no dropout, because its masks depend on the ranks.
  expect_one_run({"tuning.lora.use_dora=true", "tuning.lora.dropout=0"},
                 {{"zero3", "3"}, {"ddp", "2"}, {"zero1", "4"}, {"none", "1"}});
}

// A save reads the state before training changes it, so the checkpoint has nothing of later steps,
// and training has the same result.
TEST(OtherStrategies, SavingBehindTheTrainingChangesNothing) {
  const TrainFixture fixture;
  for (const char* strategy : {"ddp", "zero3"}) {
    const std::string plain = fmt::format("{}-plain", strategy);
    const std::string behind = fmt::format("{}-behind", strategy);
    Settings copying = kFull;
    copying.emplace_back("train.epochs=2");
    ASSERT_EQ(fixture.run(plain, with_leg(copying, {strategy, "2"})).status, 0);
    copying.emplace_back("train.async_save=true");
    const Ended ended = fixture.run(behind, with_leg(copying, {strategy, "2"}));
    ASSERT_EQ(ended.status, 0) << ended.errors;
    expect_same_result(fixture, plain, behind);
    ASSERT_EQ(fixture.checkpoint_steps(behind), fixture.checkpoint_steps(plain));
    EXPECT_EQ(fixture.num_events(behind, "checkpoint"), fixture.num_events(plain, "checkpoint"));
    for (const int64_t step : fixture.checkpoint_steps(plain))
      for (const auto& entry : std::filesystem::directory_iterator(fixture.checkpoint(plain, step)))
        if (entry.path().extension() == ".safetensors") {
          const auto other = fixture.checkpoint(behind, step) / entry.path().filename();
          EXPECT_TRUE(read_file(other) == read_file(entry.path())) << other;
        }
  }
}

// The exported model, which no rank held as a whole, equals the model of ddp. There is no
// accumulation, because zero2 and zero3 sum over ranks first and ddp over micro-batches.
void expect_model_of_ddp(const TrainFixture& fixture, const std::string& name, Settings settings) {
  settings.insert(settings.end(), {"tuning.mode=full", "train.grad_accum=1", "train.epochs=2",
                                   "train.save_steps=1000"});
  const std::string ddp = "ddp-" + name;
  const Ended ended = fixture.run(ddp, with_leg(settings, {"ddp", "2"}));
  ASSERT_EQ(ended.status, 0) << ended.errors;
  for (const char* strategy : {"zero1", "zero2", "zero3"}) {
    const std::string run = strategy + ("-" + name);
    const Ended sharded = fixture.run(run, with_leg(settings, {strategy, "2"}));
    ASSERT_EQ(sharded.status, 0) << sharded.errors;
    EXPECT_EQ(fixture.losses(run), fixture.losses(ddp)) << run;
    EXPECT_TRUE(fixture.weights(run) == fixture.weights(ddp)) << run;
  }
}

TEST(OtherStrategies, TheExportedModelIsThatOfDdp) {
  const TrainFixture fixture;
  expect_model_of_ddp(fixture, "plain", {});
}

// The models are equal for every format of the moments, also with random rounding.
TEST(OtherStrategies, TheExportedModelOfNarrowStatesIsThatOfDdp) {
  const TrainFixture fixture;
  expect_model_of_ddp(fixture, "codes", {"train.optim=adamw_8bit"});
  expect_model_of_ddp(
      fixture, "drawn",
      {"train.bf16=true", "train.optimizer_state_dtype=bf16", "train.master_weights=none"});
}

}  // namespace
}  // namespace convoy::testing
