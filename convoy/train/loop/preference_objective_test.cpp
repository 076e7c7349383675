// SPDX-License-Identifier: Apache-2.0
//
// The loss of pairs and its gradients, against autograd over all logits.
#include "convoy/train/loop/preference_objective.h"

#include <ATen/ATen.h>

#include "convoy/train/loop/toy_run_test.h"

namespace convoy::train {
namespace {

const std::vector<double> kReference = {-4, -9, -12, -3.5, -6, -5};

// Three pairs.
data::TokenDataset toy_pairs() {
  return data::TokenDataset::from_rows({row({1, 2, 3, 4, 5}, 2), row({1, 2, 7, 8, 9, 10, 0}, 2),
                                        row({4, 4, 2, 6, 3}, 3), row({4, 4, 2, 1}, 3),
                                        row({9, 8, 7}), row({9, 3, 3})});
}

settings::TrainSettings pair_settings(const std::string& task) {
  settings::TrainSettings settings = make_settings();
  settings.task = task;
  settings.preference.beta = 0.4;
  if (task == "dpo") settings.preference.sft_weight = 0.25;
  return settings;
}

// Autograd keeps the logits of every token here.
at::Tensor plain_pair_loss(ToyModel& model, const settings::TrainSettings& settings) {
  const data::TokenDataset dataset = toy_pairs();
  std::vector<at::Tensor> sums;
  for (int64_t at = 0; at < dataset.num_rows(); ++at) {
    const LabelledBatch batch = assemble_batch(dataset, {at});
    const at::Tensor logits_TV =
        at::matmul(model.hidden_states(batch.tokens, {}), model.head().weight().t());
    const at::Tensor log_probability_N = at::log_softmax(logits_TV.to(at::kDouble), 1)
                                             .index_select(0, batch.labels.tokens_N())
                                             .gather(1, batch.labels.labels_N().unsqueeze(1));
    sums.push_back(log_probability_N.sum());
  }
  at::Tensor loss = at::zeros({}, at::kDouble);
  for (size_t pair = 0; pair < sums.size() / 2; ++pair) {
    const at::Tensor& chosen = sums[2 * pair];
    const at::Tensor& rejected = sums[2 * pair + 1];
    const auto tokens = [&](size_t side) {
      return static_cast<double>(dataset.supervised_tokens(static_cast<int64_t>(2 * pair + side)));
    };
    if (settings.task == "dpo") {
      const at::Tensor margin = chosen - kReference[2 * pair] - rejected + kReference[2 * pair + 1];
      loss = loss - at::log_sigmoid(0.4 * margin) - 0.25 * chosen / tokens(0);
    } else {
      const auto odds = [](const at::Tensor& mean) { return mean - at::log(1 - at::exp(mean)); };
      const at::Tensor mean = chosen / tokens(0);
      loss = loss - mean - 0.4 * at::log_sigmoid(odds(mean) - odds(rejected / tokens(1)));
    }
  }
  return loss;
}

class PairsOfTask : public ::testing::TestWithParam<const char*> {};

TEST_P(PairsOfTask, LossAndGradientsEqualAutogradOverAllLogits) {
  const settings::TrainSettings settings = pair_settings(GetParam());
  ToyModel wanted;
  const at::Tensor whole = plain_pair_loss(wanted, settings);
  whole.backward();
  const data::TokenDataset none;
  for (const int64_t accumulation : {1, 3}) {
    ToyModel model;
    const data::BatchPlan plan(toy_pairs(), {.batch_size = 3 / accumulation,
                                             .grad_accum = accumulation,
                                             .shuffle = false,
                                             .rows_of_item = 2});
    const objectives::PairObjective loss(settings);
    ReferenceScores reference;
    if (loss.has_reference()) reference.train = kReference;
    PreferenceObjective objective(model, plan, none, 1, loss, reference);
    objective.begin({.first = 0, .end = 1}, 0);
    double value = 0;
    std::vector<double> figures(static_cast<size_t>(objective.num_figures()), 0.0);
    for (int64_t number = 0; number < accumulation; ++number) {
      const MicroBatchPosition place = objective.take();
      EXPECT_EQ(place.step.rows, 3);
      EXPECT_EQ(place.step.weight, 3);
      const MicroBatchLoss found = objective.loss({});
      found.sum.backward();
      value += found.sum.item<double>();
      for (size_t at = 0; at < figures.size(); ++at)
        figures[at] += found.figures[static_cast<int64_t>(at)].item<double>();
    }
    EXPECT_NEAR(value, whole.item<double>(), 1e-5);
    const std::vector<nn::NamedTensor> of_wanted = wanted.parameters();
    const std::vector<nn::NamedTensor> of_model = model.parameters();
    for (size_t at = 0; at < of_wanted.size(); ++at)
      EXPECT_TRUE(at::allclose(of_model[at].value.grad(), of_wanted[at].value.grad(), 1e-4, 1e-6))
          << of_wanted[at].name;
    const std::map<std::string, double> named = objective.step_figures(figures);
    EXPECT_NEAR(named.at("rewards/margins"),
                named.at("rewards/chosen") - named.at("rewards/rejected"), 1e-12);
    EXPECT_NEAR(named.at("loss/sft") + named.at("loss/preference"), value / 3, 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(All, PairsOfTask, ::testing::Values("dpo", "orpo"),
                         [](const auto& task) { return std::string(task.param); });

TEST(PreferenceObjective, AnEvaluationHasTheFiguresOfAStepOverTheSamePairs) {
  ToyModel model;
  const settings::TrainSettings settings = pair_settings("dpo");
  const data::TokenDataset validation = toy_pairs();
  const data::BatchPlan plan(toy_pairs(), {.batch_size = 3, .shuffle = false, .rows_of_item = 2});
  PreferenceObjective objective(model, plan, validation, 2, objectives::PairObjective(settings),
                                {kReference, kReference});
  objective.begin({.first = 0, .end = 1}, 0);
  objective.take();
  const MicroBatchLoss step = objective.loss({});
  const auto group = comm::join_group(comm::read_rank_environment(), std::chrono::seconds(300));
  const std::optional<Evaluation> evaluation = objective.evaluate(*group, {});
  ASSERT_TRUE(evaluation.has_value());
  EXPECT_NEAR(evaluation->loss, step.sum.item<double>() / 3, 1e-9);
  EXPECT_EQ(evaluation->rows, 3);
  EXPECT_EQ(evaluation->batches, 2);
  EXPECT_EQ(evaluation->supervised_tokens, 3 + 5 + 2 + 1 + 2 + 2);
  const double* const sums = step.figures.const_data_ptr<double>();
  for (const auto& [name, value] : objective.step_figures({sums, sums + step.figures.numel()}))
    EXPECT_NEAR(evaluation->others.at(name), value, 1e-9) << name;
  EXPECT_EQ(evaluation->others.at("accuracy"), evaluation->others.at("rewards/accuracies"));
}

}  // namespace
}  // namespace convoy::train
