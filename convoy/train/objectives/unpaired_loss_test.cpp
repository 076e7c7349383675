// SPDX-License-Identifier: Apache-2.0
//
// The loss against its paper's formula, written out in plain arithmetic here.
#include "convoy/train/objectives/unpaired_loss.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace convoy::objectives {
namespace {

double value_of(double x) { return 1 / (1 + std::exp(-x)); }

struct Answer {
  double model, reference;
  bool is_good;
};

const std::vector<Answer> kAnswers = {
    {-12, -13.5, true}, {-9, -8.25, true}, {-30, -10, false}, {-4, -8, false}};

JudgedLosses losses_at(const settings::PreferenceSettings& settings, double divergence,
                       at::Tensor& log_probability_R) {
  std::vector<double> model, reference;
  std::vector<int64_t> good;
  for (const Answer& answer : kAnswers) {
    model.push_back(answer.model);
    reference.push_back(answer.reference);
    good.push_back(answer.is_good);
  }
  log_probability_R = at::tensor(model, at::kDouble).requires_grad_(true);
  return judged_losses(settings,
                       {.log_probability_R = log_probability_R,
                        .reference_R = at::tensor(reference, at::kDouble),
                        .is_good_R = at::tensor(good).to(at::kBool)},
                       divergence);
}

TEST(UnpairedLoss, IsThePapersFormula) {
  settings::PreferenceSettings settings;
  settings.beta = 0.3;
  settings.desirable_weight = 1.25;
  settings.undesirable_weight = 0.5;
  constexpr double kDivergence = 0.75;
  at::Tensor log_probability_R;
  const JudgedLosses found = losses_at(settings, kDivergence, log_probability_R);
  found.loss_R.sum().backward();
  for (size_t at = 0; at < kAnswers.size(); ++at) {
    const Answer& answer = kAnswers[at];
    const auto row = static_cast<int64_t>(at);
    const double ratio = answer.model - answer.reference;
    const double value =
        value_of(answer.is_good ? 0.3 * (ratio - kDivergence) : 0.3 * (kDivergence - ratio));
    const double weight = answer.is_good ? 1.25 : 0.5;
    EXPECT_NEAR(found.loss_R[row].item<double>(), weight * (1 - value), 1e-12);
    EXPECT_NEAR(found.reward_R[row].item<double>(), 0.3 * ratio, 1e-12);
    // A good answer becomes likelier, a bad one less so.
    EXPECT_NEAR(log_probability_R.grad()[row].item<double>(),
                (answer.is_good ? -1 : 1) * weight * 0.3 * value * (1 - value), 1e-12);
  }
}

// Gains count from the reference: 1 - sigmoid(beta r) of good answers, sigmoid(beta r) of bad ones.
TEST(UnpairedLoss, WithoutADivergenceIsApoZeroOfSingleAnswers) {
  settings::PreferenceSettings settings;
  settings.beta = 0.3;
  settings.undesirable_weight = 0.5;
  at::Tensor log_probability_R;
  const JudgedLosses found = losses_at(settings, 0, log_probability_R);
  for (size_t at = 0; at < kAnswers.size(); ++at) {
    const Answer& answer = kAnswers[at];
    const double value = value_of(0.3 * (answer.model - answer.reference));
    EXPECT_NEAR(found.loss_R[static_cast<int64_t>(at)].item<double>(),
                answer.is_good ? 1 - value : 0.5 * value, 1e-12);
  }
}

TEST(UnpairedLoss, TheDivergenceIsAMeanAndNeverNegative) {
  EXPECT_EQ(divergence_estimate(3, 4), 0.75);
  EXPECT_EQ(divergence_estimate(-3, 4), 0);
  EXPECT_EQ(divergence_estimate(0, 0), 0) << "a step of a single row has no other answer";
}

}  // namespace
}  // namespace convoy::objectives
