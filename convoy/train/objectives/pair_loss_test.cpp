// SPDX-License-Identifier: Apache-2.0
//
// Each loss against its paper's formula, written out in plain arithmetic here.
#include "convoy/train/objectives/pair_loss.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace convoy::objectives {
namespace {

double log_sigmoid(double x) { return -std::log1p(std::exp(-x)); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

at::Tensor fp64(const std::vector<double>& values) {
  return at::tensor(values, at::TensorOptions().dtype(at::kDouble));
}

// A pair: log-probabilities of model and reference, and lengths.
struct Pair {
  double chosen, rejected, reference_chosen, reference_rejected, chosen_tokens, rejected_tokens;
  double p() const { return chosen - reference_chosen; }
  double q() const { return rejected - reference_rejected; }
};

const std::vector<Pair> kPairs = {
    {-12, -9, -13.5, -8.25, 4, 7}, {-3, -30, -2.5, -10, 1, 12}, {-8, -8, -8, -8, 3, 3}};

struct Computed {
  std::vector<double> losses;
  std::vector<double> chosen_gradients;
  PairLosses all;
};

Computed computed(const settings::TrainSettings& settings, double shift = 0) {
  CompletionScores chosen, rejected;
  std::vector<double> values[6];
  for (const Pair& pair : kPairs) {
    values[0].push_back(pair.chosen + shift);
    values[1].push_back(pair.rejected);
    values[2].push_back(pair.reference_chosen);
    values[3].push_back(pair.reference_rejected);
    values[4].push_back(pair.chosen_tokens);
    values[5].push_back(pair.rejected_tokens);
  }
  const PairObjective objective(settings);
  chosen.log_probability_P = fp64(values[0]).requires_grad_(true);
  rejected.log_probability_P = fp64(values[1]).requires_grad_(true);
  if (objective.has_reference()) {
    chosen.reference_P = fp64(values[2]);
    rejected.reference_P = fp64(values[3]);
  }
  chosen.tokens_P = fp64(values[4]);
  rejected.tokens_P = fp64(values[5]);
  Computed found{.losses = {}, .chosen_gradients = {}, .all = objective.losses(chosen, rejected)};
  found.all.loss_P.sum().backward();
  const auto list = [](const at::Tensor& tensor) {
    const at::Tensor held = tensor.detach().contiguous();
    return std::vector<double>(held.const_data_ptr<double>(),
                               held.const_data_ptr<double>() + held.numel());
  };
  found.losses = list(found.all.loss_P);
  found.chosen_gradients = list(chosen.log_probability_P.grad());
  return found;
}

settings::TrainSettings dpo(const std::string& loss, double beta = 0.3) {
  settings::TrainSettings settings;
  settings.task = "dpo";
  settings.preference.loss = loss;
  settings.preference.beta = beta;
  return settings;
}

void expect_losses(const settings::TrainSettings& settings,
                   const std::function<double(const Pair&)>& formula) {
  SCOPED_TRACE(settings.preference.loss);
  const Computed found = computed(settings);
  for (size_t pair = 0; pair < kPairs.size(); ++pair)
    EXPECT_NEAR(found.losses[pair], formula(kPairs[pair]), 1e-12) << pair;
  // The derivative in the chosen log-probability, by difference; hinge has a corner.
  constexpr double kShift = 1e-5;
  const Computed more = computed(settings, kShift);
  const Computed less = computed(settings, -kShift);
  for (size_t pair = 0; pair < kPairs.size(); ++pair)
    EXPECT_NEAR(found.chosen_gradients[pair],
                (more.losses[pair] - less.losses[pair]) / (2 * kShift), 1e-7)
        << pair;
}

TEST(PairLoss, EachIsItsPapersFormula) {
  constexpr double kBeta = 0.3;
  const auto margin = [](const Pair& pair) { return kBeta * (pair.p() - pair.q()); };
  expect_losses(dpo("sigmoid"), [&](const Pair& pair) { return -log_sigmoid(margin(pair)); });
  expect_losses(dpo("hinge"), [&](const Pair& pair) { return std::max(0.0, 1 - margin(pair)); });
  expect_losses(dpo("ipo"), [&](const Pair& pair) {
    const double mean = pair.p() / pair.chosen_tokens - pair.q() / pair.rejected_tokens;
    return std::pow(mean - 1 / (2 * kBeta), 2);
  });
  expect_losses(dpo("nca_pair"), [&](const Pair& pair) {
    return -log_sigmoid(kBeta * pair.p()) - 0.5 * log_sigmoid(-kBeta * pair.p()) -
           0.5 * log_sigmoid(-kBeta * pair.q());
  });
  expect_losses(dpo("sppo_hard"), [&](const Pair& pair) {
    return std::pow(pair.p() - 0.5 / kBeta, 2) + std::pow(pair.q() + 0.5 / kBeta, 2);
  });
  expect_losses(dpo("apo_zero"), [&](const Pair& pair) {
    return 1 - sigmoid(kBeta * pair.p()) + sigmoid(kBeta * pair.q());
  });
  expect_losses(dpo("apo_down"), [&](const Pair& pair) {
    return sigmoid(kBeta * pair.p()) + 1 - sigmoid(margin(pair));
  });
}

TEST(PairLoss, ASmoothedLabelIsAMixtureOfBoth) {
  constexpr double kBeta = 0.3;
  constexpr double kShare = 0.2;
  const auto margin = [](const Pair& pair) { return kBeta * (pair.p() - pair.q()); };
  const auto smoothed = [](settings::TrainSettings settings) {
    settings.preference.label_smoothing = kShare;
    return settings;
  };
  expect_losses(smoothed(dpo("sigmoid")), [&](const Pair& pair) {
    return -(1 - kShare) * log_sigmoid(margin(pair)) - kShare * log_sigmoid(-margin(pair));
  });
  expect_losses(smoothed(dpo("robust")), [&](const Pair& pair) {
    return (-(1 - kShare) * log_sigmoid(margin(pair)) + kShare * log_sigmoid(-margin(pair))) /
           (1 - 2 * kShare);
  });
  // The divergence of the model's preference from that of the labels.
  expect_losses(smoothed(dpo("exo_pair")), [&](const Pair& pair) {
    const double right = sigmoid(margin(pair));
    return right * std::log(right / (1 - kShare)) + (1 - right) * std::log((1 - right) / kShare);
  });
}

TEST(PairLoss, WithoutAReferenceTheProbabilityOfATokenCounts) {
  settings::TrainSettings simpo = dpo("simpo", 2.0);
  simpo.preference.target_margin = 0.7;
  expect_losses(simpo, [](const Pair& pair) {
    return -log_sigmoid(
        2.0 * (pair.chosen / pair.chosen_tokens - pair.rejected / pair.rejected_tokens) - 0.7);
  });
  settings::TrainSettings orpo;
  orpo.task = "orpo";
  orpo.preference.beta = 0.25;
  expect_losses(orpo, [](const Pair& pair) {
    const double chosen = std::exp(pair.chosen / pair.chosen_tokens);
    const double rejected = std::exp(pair.rejected / pair.rejected_tokens);
    const double odds = std::log(chosen / (1 - chosen)) - std::log(rejected / (1 - rejected));
    return -pair.chosen / pair.chosen_tokens - 0.25 * log_sigmoid(odds);
  });
  const Computed parts = computed(orpo);
  EXPECT_NEAR(parts.all.sft_P[0].item<double>(), 3, 1e-12);
  EXPECT_NEAR(parts.all.chosen_reward_P[0].item<double>(), 0.25 * -3, 1e-12);
}

TEST(PairLoss, PartsAndRewards) {
  settings::TrainSettings settings = dpo("sigmoid");
  settings.preference.sft_weight = 0.5;
  expect_losses(settings, [](const Pair& pair) {
    return -log_sigmoid(0.3 * (pair.p() - pair.q())) - 0.5 * pair.chosen / pair.chosen_tokens;
  });
  settings.preference.length_normalised = "true";
  expect_losses(settings, [](const Pair& pair) {
    return -log_sigmoid(0.3 * (pair.p() / pair.chosen_tokens - pair.q() / pair.rejected_tokens)) -
           0.5 * pair.chosen / pair.chosen_tokens;
  });
  const Computed found = computed(settings);
  for (size_t pair = 0; pair < kPairs.size(); ++pair) {
    const auto at = static_cast<int64_t>(pair);
    EXPECT_NEAR(found.all.chosen_reward_P[at].item<double>(), 0.3 * kPairs[pair].p(), 1e-12);
    EXPECT_NEAR(found.all.rejected_reward_P[at].item<double>(), 0.3 * kPairs[pair].q(), 1e-12);
  }
}

}  // namespace
}  // namespace convoy::objectives
