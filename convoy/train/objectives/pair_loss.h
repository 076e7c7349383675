// SPDX-License-Identifier: Apache-2.0
//
// Losses of pairs of completions, from the log-probabilities of both. Shapes: P pairs. All fp64, on
// any device; no call waits for the device.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "convoy/core/settings/train_settings.h"

namespace convoy::objectives {

// One side of each pair: the log-probability of the completion after its prompt, as a sum over its
// tokens.
struct CompletionScores {
  at::Tensor log_probability_P;
  at::Tensor reference_P;  // the same for the reference; undefined: there is none
  at::Tensor tokens_P;     // tokens of the completion
};

struct PairLosses {
  at::Tensor loss_P;  // differentiable in both log-probabilities
  // beta times the logarithm of the ratio to the reference; without one, of the probability itself.
  at::Tensor chosen_reward_P;
  at::Tensor rejected_reward_P;
  // the part of `loss_P` that is the chosen completion's own loss; undefined: none
  at::Tensor sft_P;
};

// The loss of a task of pairs. The loss of a step is the mean over its pairs.
class PairObjective {
 public:
  // The task of `settings` is one of pairs.
  explicit PairObjective(const settings::TrainSettings& settings);

  bool has_reference() const { return has_reference_; }
  PairLosses losses(const CompletionScores& chosen, const CompletionScores& rejected) const;

 private:
  at::Tensor preference_losses(const at::Tensor& chosen_P, const at::Tensor& rejected_P) const;
  static at::Tensor mean_losses(const CompletionScores& chosen);

  settings::PreferenceSettings settings_;
  settings::PairLoss loss_;
  bool has_reference_;
  bool takes_means_;
  bool compares_odds_;  // ORPO
};

}  // namespace convoy::objectives
