// SPDX-License-Identifier: Apache-2.0
//
// Runs of the loop that end before their last step, and the runs that continue them.
#include <limits>

#include "convoy/core/base/error.h"
#include "convoy/train/loop/toy_run_test.h"
#include "files/temporary_folder.h"

namespace convoy::train {
namespace {

class RunEnd : public ::testing::Test {
 protected:
  fs::path fresh_folder() { return folder_ / std::to_string(++count_); }

  testing::TemporaryFolder folder_;
  int count_ = 0;
};

TEST_F(RunEnd, AStopFinishesTheStepSavesAndGoesOnToTheSameBits) {
  settings::TrainSettings settings = make_settings();
  settings.train.grad_accum = 2;
  ToyRun unbroken(settings, fresh_folder());
  unbroken.go();

  const fs::path folder = fresh_folder();
  ToyRun stopped(settings, folder);
  int64_t forwards = 0;
  stopped.model.before_forward = [&] {
    if (++forwards == 5) stopped.stop_requested = true;  // in the third step
  };
  const LoopResult result = stopped.go();
  EXPECT_EQ(result.end, LoopEnd::Stopped);
  EXPECT_EQ(result.progress.step, 3);
  EXPECT_EQ(stopped.checkpoints.load_newest()->state.progress, result.progress);

  ToyRun resumed(settings, folder);
  EXPECT_EQ(resumed.go().end, LoopEnd::Finished);
  expect_same_bits(resumed.values(), unbroken.values());
}

// Asked to stop in each of its forward passes in turn, within steps and within evaluations.
TEST_F(RunEnd, AStopPutsAnEvaluationOffAndTheNextRunMakesIt) {
  const data::TokenDataset validation = data::TokenDataset::from_rows(
      {row({1, 2, 3}), row({4, 5}), row({6, 7}), row({2, 3}), row({5, 6, 7})});
  settings::TrainSettings settings = make_settings();
  settings.train.steps = 4;
  settings.train.eval_strategy = "steps";
  settings.train.eval_steps = 2;
  settings.train.eval_batch_size = 1;
  settings.train.final_eval = true;
  const auto losses = [](const ToyRun& run) {
    std::vector<std::pair<int64_t, double>> found;
    for (const json& event : run.events("eval")) found.emplace_back(event["step"], event["loss"]);
    return found;
  };
  ToyRun unbroken(settings, fresh_folder(), validation);
  const LoopResult whole = unbroken.go();
  int64_t num_put_off = 0;
  for (int64_t stop_at = 1;; ++stop_at) {
    SCOPED_TRACE(stop_at);
    const fs::path folder = fresh_folder();
    ToyRun stopped(settings, folder, validation);
    int64_t forwards = 0;
    stopped.model.before_forward = [&] {
      if (++forwards == stop_at) stopped.stop_requested = true;
    };
    const LoopResult result = stopped.go();
    if (forwards < stop_at) break;
    if (result.end == LoopEnd::Finished) continue;
    num_put_off += result.progress.evaluation_pending ? 1 : 0;
    ToyRun resumed(settings, folder, validation);
    const LoopResult rest = resumed.go();
    EXPECT_EQ(rest.end, LoopEnd::Finished);
    EXPECT_EQ(rest.progress, whole.progress);
    EXPECT_EQ(losses(resumed), losses(unbroken));
    expect_same_bits(resumed.values(), unbroken.values());
  }
  EXPECT_GE(num_put_off, 4) << "two steps before an evaluation, and the first batch of each";
}

TEST_F(RunEnd, ARunThatHasAllItsStepsTakesNone) {
  settings::TrainSettings settings = make_settings();
  settings.train.save_strategy = "steps";
  settings.train.save_steps = 6;
  const fs::path folder = fresh_folder();
  ToyRun(settings, folder).go();
  ToyRun again(settings, folder);
  int64_t forwards = 0;
  again.model.before_forward = [&] { ++forwards; };
  EXPECT_EQ(again.go().end, LoopEnd::Finished);
  EXPECT_EQ(forwards, 0);
}

TEST_F(RunEnd, EndsEarlyWhenNothingGetsBetter) {
  const data::TokenDataset validation = data::TokenDataset::from_rows({row({1, 3}), row({3, 2})});
  settings::TrainSettings settings = make_settings();
  settings.train.steps = 40;
  settings.train.eval_strategy = "steps";
  settings.train.eval_steps = 2;
  settings.train.early_stopping_patience = 3;
  settings.train.learning_rate = 0;  // the first evaluation stays the best
  ToyRun run(settings, fresh_folder(), validation);
  const LoopResult result = run.go();
  EXPECT_EQ(result.end, LoopEnd::EarlyStopped);
  EXPECT_EQ(result.progress.step, 8);
  EXPECT_EQ(result.progress.best_step, 2);
  EXPECT_EQ(result.progress.evaluations_without_improvement, 3);
  EXPECT_EQ(run.events("eval").size(), 4U);

  settings.train.early_stopping_patience = 0;
  settings.train.steps = 12;
  ToyRun patient(settings, fresh_folder(), validation);
  EXPECT_EQ(patient.go().end, LoopEnd::Finished);
}

TEST_F(RunEnd, ALossThatIsNoNumberEndsTheRunAndIsNotSaved) {
  settings::TrainSettings settings = make_settings();
  settings.train.save_strategy = "steps";
  settings.train.save_steps = 1;
  for (const double poison :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    ToyRun run(settings, fresh_folder());
    Tensors before;
    int64_t forwards = 0;
    run.model.before_forward = [&] {
      if (++forwards != 3) return;
      run.model.factor = poison;
      before = run.values();
    };
    try {
      run.go();
      ADD_FAILURE() << "the run went on with " << poison;
    } catch (const NumericError& error) {
      EXPECT_EQ(error.location().step, 3);
    }
    EXPECT_EQ(run.checkpoints.load_newest()->state.progress.step, 2);
    expect_same_bits(run.values(), before);
  }
}

}  // namespace
}  // namespace convoy::train
