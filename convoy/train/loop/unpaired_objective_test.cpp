// SPDX-License-Identifier: Apache-2.0
//
// The loss of single answers and its gradients, against autograd over all logits.
#include "convoy/train/loop/unpaired_objective.h"

#include <ATen/ATen.h>

#include <cmath>

#include "convoy/train/loop/mismatched_rows.h"
#include "convoy/train/loop/toy_run_test.h"

namespace convoy::train {
namespace {

data::EncodedRow bad_row(data::EncodedRow row) {
  row.is_desirable = false;
  return row;
}

data::TokenDataset judged_rows() {
  return data::TokenDataset::from_rows(
      {row({1, 2, 3, 4, 5}, 2), bad_row(row({1, 2, 7, 8, 9, 10}, 2)), row({4, 4, 2, 6, 3}, 3),
       bad_row(row({4, 5, 2, 1}, 3)), row({9, 8, 7}), bad_row(row({6, 3, 3}))});
}

const std::vector<double> kReferences = {-4, -9, -12, -3.5, -6, -5};
const std::vector<double> kMismatched = {-30, -31, -32, -33, -34, -35};

std::vector<double> mismatched_of_epoch(int64_t /*epoch*/) { return kMismatched; }

UnpairedOptions judged_options(int64_t eval_batch_size = 4) {
  UnpairedOptions options{.most_tokens = 64, .eval_batch_size = eval_batch_size};
  options.preference.beta = 0.4;
  options.preference.desirable_weight = 1.5;
  return options;
}

std::vector<at::Tensor> log_probabilities(ToyModel& model, const data::TokenDataset& dataset) {
  std::vector<at::Tensor> sums;
  for (int64_t at = 0; at < dataset.num_rows(); ++at) {
    const LabelledBatch batch = assemble_batch(dataset, {at});
    const at::Tensor logits_TV =
        at::matmul(model.hidden_states(batch.tokens, {}), model.head().weight().t());
    sums.push_back(at::log_softmax(logits_TV.to(at::kDouble), 1)
                       .index_select(0, batch.labels.tokens_N())
                       .gather(1, batch.labels.labels_N().unsqueeze(1))
                       .sum());
  }
  return sums;
}

struct Plain {
  at::Tensor loss;
  double divergence = 0;
};

// The loss written out, with the answers of the row before behind each prompt.
Plain plain_loss(ToyModel& model) {
  const data::TokenDataset rows = judged_rows();
  const data::TokenDataset others = data::TokenDataset::from_rows(
      {row({1, 2, 3, 3}, 2), row({1, 2, 3, 4, 5}, 2), row({4, 4, 2, 7, 8, 9, 10}, 3),
       row({4, 5, 2, 6, 3}, 3), row({9, 1}, 1), row({6, 8, 7}, 1)});
  Plain plain{.loss = at::zeros({}, at::kDouble)};
  const std::vector<at::Tensor> mismatched = log_probabilities(model, others);
  for (size_t at = 0; at < mismatched.size(); ++at)
    plain.divergence += (mismatched[at].item<double>() - kMismatched[at]) / 6;
  EXPECT_GT(plain.divergence, 0);
  const std::vector<at::Tensor> own = log_probabilities(model, rows);
  for (size_t at = 0; at < own.size(); ++at) {
    const at::Tensor ratio = own[at] - kReferences[at];
    const bool is_good = rows.is_desirable(static_cast<int64_t>(at));
    const at::Tensor gain = is_good ? ratio - plain.divergence : plain.divergence - ratio;
    plain.loss = plain.loss + (is_good ? 1.5 : 1.0) * (1 - at::sigmoid(0.4 * gain));
  }
  return plain;
}

data::BatchPlan judged_plan(int64_t accumulation) {
  return {judged_rows(),
          {.batch_size = 6 / accumulation, .grad_accum = accumulation, .shuffle = false}};
}

TEST(UnpairedObjective, LossAndGradientsEqualAutogradOverAllLogits) {
  ToyModel wanted;
  const Plain plain = plain_loss(wanted);
  plain.loss.backward();
  const data::TokenDataset none;
  const auto group = comm::join_group(comm::read_rank_environment(), std::chrono::seconds(300));
  for (const int64_t accumulation : {1, 2, 3}) {
    ToyModel model;
    const data::BatchPlan plan = judged_plan(accumulation);
    UnpairedObjective objective(
        model, plan, none, judged_options(),
        {.train = kReferences, .validation = {}, .mismatched_of_epoch = mismatched_of_epoch},
        *group);
    objective.begin({.first = 0, .end = 1}, 0);
    double value = 0;
    std::vector<double> figures(static_cast<size_t>(objective.num_figures()), 0.0);
    for (int64_t number = 0; number < accumulation; ++number) {
      EXPECT_EQ(objective.take().step.weight, 6);
      const MicroBatchLoss found = objective.loss({});
      found.sum.backward();
      value += found.sum.item<double>();
      for (size_t at = 0; at < figures.size(); ++at)
        figures[at] += found.figures[static_cast<int64_t>(at)].item<double>();
    }
    EXPECT_NEAR(value, plain.loss.item<double>(), 1e-5) << accumulation;
    EXPECT_NEAR(objective.step_figures(figures).at("kl"), plain.divergence, 1e-5);
    const std::vector<nn::NamedTensor> of_wanted = wanted.parameters();
    const std::vector<nn::NamedTensor> of_model = model.parameters();
    for (size_t at = 0; at < of_wanted.size(); ++at)
      EXPECT_TRUE(at::allclose(of_model[at].value.grad(), of_wanted[at].value.grad(), 1e-4, 1e-6))
          << of_wanted[at].name;
  }
}

TEST(UnpairedObjective, AnEvaluationHasTheFiguresOfAStepOverTheSameRows) {
  ToyModel model;
  const data::TokenDataset validation = judged_rows();
  const data::BatchPlan plan = judged_plan(1);
  const auto group = comm::join_group(comm::read_rank_environment(), std::chrono::seconds(300));
  for (const int64_t batch : {2, 6}) {
    UnpairedObjective objective(model, plan, validation, judged_options(batch),
                                {kReferences, kReferences, mismatched_of_epoch, kMismatched},
                                *group);
    objective.begin({.first = 0, .end = 1}, 0);
    objective.take();
    const MicroBatchLoss step = objective.loss({});
    const std::optional<Evaluation> evaluation = objective.evaluate(*group, {});
    ASSERT_TRUE(evaluation.has_value());
    EXPECT_NEAR(evaluation->loss, step.sum.item<double>() / 6, 1e-9);
    EXPECT_EQ(evaluation->rows, 6);
    const double* const sums = step.figures.const_data_ptr<double>();
    const auto named = objective.step_figures({sums, sums + step.figures.numel()});
    EXPECT_EQ(named.size(), 6U);
    for (const auto& [name, value] : named)
      EXPECT_NEAR(evaluation->others.at(name), value, 1e-9) << name;
  }
}

TEST(UnpairedObjective, WithoutADivergenceNoAnswerIsLent) {
  ToyModel model;
  const data::TokenDataset validation = judged_rows();
  const std::vector<at::Tensor> own = log_probabilities(model, validation);
  double wanted = 0;
  for (size_t at = 0; at < own.size(); ++at) {
    const bool is_good = validation.is_desirable(static_cast<int64_t>(at));
    const double reward = 0.4 * (own[at].item<double>() - kReferences[at]);
    const double value = 1 / (1 + std::exp(-reward));
    wanted += is_good ? 1.5 * (1 - value) : value;
  }
  const auto group = comm::join_group(comm::read_rank_environment(), std::chrono::seconds(300));
  for (const int64_t accumulation : {1, 3}) {
    UnpairedOptions options = judged_options();
    options.estimates_divergence = false;
    const data::BatchPlan plan = judged_plan(accumulation);
    UnpairedObjective objective(model, plan, validation, options, {kReferences, kReferences},
                                *group);
    objective.begin({.first = 0, .end = 1}, 0);
    double value = 0;
    for (int64_t number = 0; number < accumulation; ++number) {
      objective.take();
      value += objective.loss({}).sum.item<double>();
    }
    EXPECT_NEAR(value, wanted, 1e-5) << accumulation;
    const std::optional<Evaluation> evaluation = objective.evaluate(*group, {});
    ASSERT_TRUE(evaluation.has_value());
    EXPECT_NEAR(evaluation->loss, wanted / 6, 1e-5);
    EXPECT_FALSE(evaluation->others.contains("kl"));
  }
}

TEST(UnpairedObjective, AsksForTheScoresOfAnEpochAsItBegins) {
  ToyModel model;
  const data::TokenDataset none;
  const data::BatchPlan plan(judged_rows(), {.batch_size = 2, .grad_accum = 1, .shuffle = true});
  const auto group = comm::join_group(comm::read_rank_environment(), std::chrono::seconds(300));
  std::vector<int64_t> epochs;
  UnpairedObjective objective(model, plan, none, judged_options(),
                              {.train = kReferences,
                               .validation = {},
                               .mismatched_of_epoch =
                                   [&](int64_t epoch) {
                                     epochs.push_back(epoch);
                                     return kMismatched;
                                   }},
                              *group);
  // Begins within the first epoch, as a resumed run does.
  objective.begin({.first = 1, .end = 7}, 0);
  for (int64_t step = 1; step < 7; ++step) {
    objective.take();
    EXPECT_EQ(std::ssize(epochs), step / 3 + 1) << step;
  }
  EXPECT_EQ(epochs, (std::vector<int64_t>{0, 1, 2}));
}

TEST(MismatchedRows, HaveTheAnswerOfTheRowBefore) {
  const data::TokenDataset rows = judged_rows();
  const std::vector<Mismatch> mismatches = mismatches_of({3, 0, 5});
  const data::TokenDataset made = mismatched_rows(rows, mismatches, 4);
  ASSERT_EQ(made.num_rows(), 3);
  const auto ids = [&](int64_t row) {
    return std::vector<int32_t>(made.ids(row).begin(), made.ids(row).end());
  };
  EXPECT_EQ(ids(0), (std::vector<int32_t>{4, 5, 2, 3}));
  EXPECT_EQ(ids(1), (std::vector<int32_t>{1, 2, 1}));
  EXPECT_EQ(ids(2), (std::vector<int32_t>{6, 3, 4, 5}));
  EXPECT_EQ(made.supervised_tokens(0), 1) << "cut at four tokens";
  EXPECT_EQ(made.supervised_tokens(2), 3);
  EXPECT_TRUE(mismatches_of({2}).empty());
}

TEST(MismatchedRows, AStepHasItsOwnAnswersHoweverItIsDealt) {
  for (const int64_t accumulation : {1, 2}) {
    const data::BatchPlan plan(
        judged_rows(),
        {.batch_size = 4 / accumulation, .grad_accum = accumulation, .shuffle = true, .seed = 3});
    for (int64_t step = 0; step < 2; ++step) {
      const std::vector<int64_t> rows = plan.rows({0, step});
      for (const Mismatch& mismatch : mismatches_of_steps(plan, 0, step, step + 1))
        EXPECT_TRUE(std::count(rows.begin(), rows.end(), mismatch.answer) == 1 &&
                    mismatch.prompt != mismatch.answer);
    }
    EXPECT_EQ(mismatches_of_steps(plan, 0, 0, 2).size(), 6U);
  }
}

}  // namespace
}  // namespace convoy::train
