// SPDX-License-Identifier: Apache-2.0
//
// The formulas come from the papers (settings/preference_settings.h names them), in the form of
// TRL 1.16 where a paper leaves a choice. p and q are the chosen and the rejected completion's
// logarithm of the ratio to the reference.
#include "convoy/train/objectives/pair_loss.h"

#include <ATen/ATen.h>

#include <cmath>

#include "convoy/core/base/error.h"

namespace convoy::objectives {
namespace {

using at::Tensor;
using settings::PairLoss;

// The least smoothing for EXO, whose targets are probabilities: no pair is certain.
constexpr double kLeastSmoothing = 1e-3;

// -log sigmoid(x) with smoothed labels: a part `share` of the label is the opposite one.
Tensor smoothed_logistic(const Tensor& x, double share) {
  const Tensor loss = -at::log_sigmoid(x);
  return share == 0 ? loss : loss * (1 - share) - at::log_sigmoid(-x) * share;
}

// log(p / (1 - p)) of a probability that is given by its logarithm. 1 - p is computed without
// cancellation for p near 1; fp64 is precise enough near 0.
Tensor log_odds(const Tensor& log_probability) {
  return log_probability - at::log(-at::expm1(log_probability));
}

bool means_of(const settings::TrainSettings& settings) {
  if (!settings.task_facts().chooses_loss) return true;  // ORPO's mean probability of a token
  const std::string& asked = settings.preference.length_normalised;
  return asked == "true" ||
         (asked == "auto" && settings::pair_loss_named(settings.preference.loss).takes_means);
}

}  // namespace

PairObjective::PairObjective(const settings::TrainSettings& settings)
    : settings_(settings.preference),
      loss_(settings::pair_loss_named(settings.preference.loss).loss),
      has_reference_(settings.has_reference()),
      takes_means_(means_of(settings)),
      compares_odds_(!settings.task_facts().chooses_loss) {}

Tensor PairObjective::mean_losses(const CompletionScores& chosen) {
  return -chosen.log_probability_P / chosen.tokens_P.clamp_min(1);
}

Tensor PairObjective::preference_losses(const Tensor& p, const Tensor& q) const {
  const double beta = settings_.beta;
  const double smoothing = settings_.label_smoothing;
  const Tensor margin = beta * (p - q);
  switch (loss_) {
    case PairLoss::Sigmoid:
      return smoothed_logistic(margin, smoothing);
    case PairLoss::Hinge:
      return at::relu(1 - margin);
    case PairLoss::Ipo:
      return (p - q - 1 / (2 * beta)).square();
    case PairLoss::Robust:
      return (at::log_sigmoid(-margin) * smoothing - at::log_sigmoid(margin) * (1 - smoothing)) /
             (1 - 2 * smoothing);
    case PairLoss::ExoPair: {
      const double share = smoothing > 0 ? smoothing : kLeastSmoothing;
      return at::sigmoid(margin) * (at::log_sigmoid(margin) - std::log1p(-share)) +
             at::sigmoid(-margin) * (at::log_sigmoid(-margin) - std::log(share));
    }
    case PairLoss::NcaPair:
      return -at::log_sigmoid(beta * p) - 0.5 * at::log_sigmoid(-beta * p) -
             0.5 * at::log_sigmoid(-beta * q);
    case PairLoss::SppoHard:
      return (p - 0.5 / beta).square() + (q + 0.5 / beta).square();
    case PairLoss::ApoZero:
      return 1 - at::sigmoid(beta * p) + at::sigmoid(beta * q);
    case PairLoss::ApoDown:
      return at::sigmoid(beta * p) + 1 - at::sigmoid(margin);
    case PairLoss::SimPo:
      return smoothed_logistic(margin - settings_.target_margin, smoothing);
  }
  CONVOY_INVARIANT(false, "loss {}", static_cast<int>(loss_));
}

PairLosses PairObjective::losses(const CompletionScores& chosen,
                                 const CompletionScores& rejected) const {
  const auto score = [this](const CompletionScores& side) {
    Tensor ratio_P = side.log_probability_P;
    if (has_reference_) ratio_P = ratio_P - side.reference_P;
    return ratio_P;
  };
  const auto mean = [](const CompletionScores& side, const Tensor& sum_P) {
    return sum_P / side.tokens_P.clamp_min(1);
  };
  Tensor p = score(chosen);
  Tensor q = score(rejected);
  PairLosses losses;
  // Rewards stay sums where a reference makes them comparable, as TRL reports them.
  if (!has_reference_ && takes_means_) {
    p = mean(chosen, p);
    q = mean(rejected, q);
  }
  losses.chosen_reward_P = settings_.beta * p.detach();
  losses.rejected_reward_P = settings_.beta * q.detach();
  if (has_reference_ && takes_means_) {
    p = mean(chosen, p);
    q = mean(rejected, q);
  }
  losses.loss_P = compares_odds_ ? -settings_.beta * at::log_sigmoid(log_odds(p) - log_odds(q))
                                 : preference_losses(p, q);
  // ORPO adds its loss, times beta, to the loss of the chosen completion, which has weight 1.
  const double sft_weight = compares_odds_ ? 1 : settings_.sft_weight;
  if (sft_weight > 0) {
    losses.sft_P = sft_weight * mean_losses(chosen);
    losses.loss_P = losses.loss_P + losses.sft_P;
    losses.sft_P = losses.sft_P.detach();
  }
  return losses;
}

}  // namespace convoy::objectives
