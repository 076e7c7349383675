// SPDX-License-Identifier: Apache-2.0
//
// The loop over a model made by hand, against the same steps written out plainly.
#include <cmath>

#include "convoy/train/loop/toy_run_test.h"
#include "files/temporary_folder.h"

namespace convoy::train {
namespace {

// The mean negative log-likelihood of the rows' supervised tokens, weighed.
at::Tensor plain_loss(ToyModel& model, const data::TokenDataset& dataset,
                      const std::vector<int64_t>& rows) {
  at::Tensor losses = at::zeros({});
  double weight = 0;
  for (const int64_t row : rows) {
    const LabelledBatch batch = assemble_batch(dataset, {row});
    const at::Tensor logits_TV =
        at::matmul(model.hidden_states(batch.tokens, {}), model.head().weight().t());
    for (int64_t token = 1; token < dataset.length_tokens(row); ++token) {
      const auto at = static_cast<size_t>(token);
      if (dataset.supervised(row)[at] == 0) continue;
      const float own = dataset.weights(row).empty() ? 1 : dataset.weights(row)[at];
      const at::Tensor label = at::tensor({int64_t{dataset.ids(row)[at]}}, at::kLong);
      losses = losses + own * at::cross_entropy_loss(logits_TV.narrow(0, token - 1, 1), label);
      weight += own;
    }
  }
  return losses / weight;
}

struct PlainStep {
  double loss = 0;
  double grad_norm = 0;
};

// Computes each step over the rows of all its micro-batches at once, with AdamW as in its paper.
std::vector<PlainStep> train_plainly(ToyRun& run) {
  const optim::LearningRateSchedule schedule = run.schedule();
  const double epsilon = run.settings.train.optimizer.adam_epsilon;
  const auto shaped_zeros = [&] {
    Tensors zeros;
    for (const nn::NamedTensor& parameter : run.parameters)
      zeros.push_back(at::zeros_like(parameter.value));
    return zeros;
  };
  Tensors means = shaped_zeros(), squares = shaped_zeros();
  std::vector<PlainStep> steps;
  for (int64_t step = 0; step < run.settings.train.steps; ++step) {
    const data::StepPosition position{step / run.plan.steps_per_epoch(),
                                      step % run.plan.steps_per_epoch()};
    std::vector<int64_t> rows;
    for (int64_t micro = 0; micro < run.plan.config().grad_accum; ++micro)
      for (const int64_t index : run.plan.rows(position, micro, 0)) rows.push_back(index);
    const at::Tensor loss = plain_loss(run.model, run.plan.dataset(), rows);
    const auto gradients =
        torch::autograd::grad({loss}, {run.parameters[0].value, run.parameters[1].value});
    double squared = 0;
    for (const at::Tensor& gradient : gradients)
      squared += gradient.to(at::kDouble).square().sum().item<double>();
    const double norm = std::sqrt(squared);
    const double most = run.settings.train.max_grad_norm;
    const double clip = most > 0 ? std::min(1.0, most / (norm + 1e-6)) : 1.0;
    const double lr = schedule.at(step);
    const at::NoGradGuard no_grad;
    for (size_t index = 0; index < gradients.size(); ++index) {
      const at::Tensor gradient = gradients[index] * clip;
      means[index] = 0.9 * means[index] + 0.1 * gradient;
      squares[index] = 0.999 * squares[index] + 0.001 * gradient.square();
      const auto time = static_cast<double>(step + 1);
      const at::Tensor mean = means[index] / (1 - std::pow(0.9, time));
      const at::Tensor square = squares[index] / (1 - std::pow(0.999, time));
      at::Tensor value = run.parameters[index].value;
      value.mul_(1 - lr * run.settings.train.weight_decay);
      value.sub_(lr * mean / (square.sqrt() + epsilon));
    }
    steps.push_back({loss.item<double>(), norm});
  }
  return steps;
}

void expect_close(const Tensors& found, const Tensors& wanted) {
  for (size_t index = 0; index < wanted.size(); ++index)
    EXPECT_TRUE(at::allclose(found[index], wanted[index], 1e-5, 1e-6))
        << index << ": " << (found[index] - wanted[index]).abs().max().item<float>();
}

class TrainLoop : public ::testing::Test {
 protected:
  fs::path fresh_folder() { return folder_ / std::to_string(++count_); }

  void expect_plain_training(const settings::TrainSettings& settings,
                             const data::TokenDataset& rows = training_rows()) {
    ToyRun run(settings, fresh_folder(), {}, rows);
    const LoopResult result = run.go();
    EXPECT_EQ(result.end, LoopEnd::Finished);
    EXPECT_EQ(result.progress.step, settings.train.steps);
    ToyRun plain(settings, fresh_folder(), {}, rows);
    const std::vector<PlainStep> wanted = train_plainly(plain);
    expect_close(run.values(), plain.values());
    const std::vector<json> steps = run.events("step");
    ASSERT_EQ(steps.size(), wanted.size());
    const optim::LearningRateSchedule schedule = run.schedule();
    for (size_t step = 0; step < wanted.size(); ++step) {
      EXPECT_EQ(steps[step]["step"], step + 1);
      EXPECT_NEAR(steps[step]["loss"].get<double>(), wanted[step].loss, 1e-5);
      EXPECT_NEAR(steps[step]["grad_norm"].get<double>(), wanted[step].grad_norm, 1e-5);
      EXPECT_NEAR(steps[step]["learning_rate"].get<double>(),
                  schedule.at(static_cast<int64_t>(step)), 1e-12);
    }
  }

  testing::TemporaryFolder folder_;
  int count_ = 0;
};

TEST_F(TrainLoop, TakesTheStepsThatAreWrittenOutPlainly) { expect_plain_training(make_settings()); }

TEST_F(TrainLoop, AccumulationWeighsEveryTokenAlike) {
  settings::TrainSettings settings = make_settings();
  settings.train.batch_size = 1;
  // 7 rows: the last step of an epoch has one row and two empty micro-batches
  settings.train.grad_accum = 3;
  expect_plain_training(settings);
}

TEST_F(TrainLoop, WeightsOfTokensHaveOneDivisorOverAStep) {
  settings::TrainSettings settings = make_settings();
  for (const int64_t grad_accum : {1, 2, 3}) {
    settings.train.batch_size = 3 / grad_accum;
    settings.train.grad_accum = grad_accum;
    expect_plain_training(settings, weighted_rows());
  }
  ToyRun weighed(settings, fresh_folder(), {}, weighted_rows());
  ToyRun plain(settings, fresh_folder());
  weighed.go();
  plain.go();
  EXPECT_FALSE(at::allclose(weighed.values()[1], plain.values()[1], 1e-3, 1e-3));
  // Counts stay counts.
  EXPECT_EQ(weighed.events("step")[0]["supervised_tokens"],
            plain.events("step")[0]["supervised_tokens"]);
}

TEST_F(TrainLoop, EvaluationsWeighTokensAsTrainingDoes) {
  settings::TrainSettings settings = make_settings();
  settings.train.steps = 2;
  settings.train.final_eval = true;
  ToyRun run(settings, fresh_folder(), weighted_rows());
  run.go();
  EXPECT_NEAR(run.events("eval").back()["loss"].get<double>(),
              plain_loss(run.model, weighted_rows(), {0, 1, 2, 3, 4, 5, 6}).item<double>(), 1e-5);
}

TEST_F(TrainLoop, ClipsTheNormOfAllGradientsTogether) {
  settings::TrainSettings settings = make_settings();
  for (const double most : {0.0, 0.05, 100.0}) {
    settings.train.max_grad_norm = most;
    expect_plain_training(settings);
  }
}

TEST_F(TrainLoop, EpochsAreRoundedUpToWholeSteps) {
  settings::TrainSettings settings = make_settings();
  settings.train.steps = 0;
  settings.train.epochs = 1.3;  // 4 steps per epoch
  ToyRun run(settings, fresh_folder());
  EXPECT_EQ(run.go().progress.step, 6);
  EXPECT_EQ(total_steps(settings.train, 4), 6);
  settings.train.epochs = 2;
  EXPECT_EQ(total_steps(settings.train, 4), 8);
}

TEST_F(TrainLoop, EvaluatesWhenItIsDueAndAtTheEnd) {
  const data::TokenDataset validation =
      data::TokenDataset::from_rows({row({1, 2, 3}), row({4, 5}), row({6, 7, 8, 9}, 2)});
  settings::TrainSettings settings = make_settings();
  settings.train.steps = 5;
  settings.train.eval_strategy = "steps";
  settings.train.eval_steps = 2;
  settings.train.final_eval = true;
  ToyRun run(settings, fresh_folder(), validation);
  run.go();
  const std::vector<json> evaluations = run.events("eval");
  std::vector<int64_t> steps;
  for (const json& event : evaluations) steps.push_back(event["step"]);
  EXPECT_EQ(steps, (std::vector<int64_t>{2, 4, 5}));
  // Training draws random numbers, the evaluations between its steps do not.
  EXPECT_EQ(run.model.phases, (std::vector<bool>{true, false, true, false, true, false}));
  EXPECT_EQ(evaluations.back()["supervised_tokens"], 5);
  EXPECT_NEAR(evaluations.back()["loss"].get<double>(),
              plain_loss(run.model, validation, {0, 1, 2}).item<double>(), 1e-5);

  settings.train.eval_strategy = "epoch";
  settings.train.final_eval = false;
  ToyRun by_epoch(settings, fresh_folder(), validation);  // 4 steps per epoch, 5 in all
  by_epoch.go();
  steps.clear();
  for (const json& event : by_epoch.events("eval")) steps.push_back(event["step"]);
  EXPECT_EQ(steps, (std::vector<int64_t>{4, 5}));

  ToyRun without_rows(settings, fresh_folder());
  without_rows.go();
  EXPECT_TRUE(without_rows.events("eval").empty());
}

TEST_F(TrainLoop, SavesWhenItIsDueAndAtTheEnd) {
  settings::TrainSettings settings = make_settings();
  settings.train.steps = 5;
  settings.train.save_strategy = "steps";
  settings.train.save_steps = 2;
  ToyRun run(settings, fresh_folder());
  run.go();
  std::vector<int64_t> steps;
  for (const json& event : run.events("checkpoint")) steps.push_back(event["step"]);
  EXPECT_EQ(steps, (std::vector<int64_t>{2, 4, 5}));
  const auto newest = run.checkpoints.load_newest();
  ASSERT_TRUE(newest);
  EXPECT_EQ(newest->state.progress.step, 5);
  EXPECT_TRUE(newest->group("toy").read("lm_head.weight").equal(run.values()[1]));
}

}  // namespace
}  // namespace convoy::train
