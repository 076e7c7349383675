// SPDX-License-Identifier: Apache-2.0
//
// Losses of rewarded texts (settings/policy_settings.h), from the log-probabilities of their
// tokens, and the advantages of rewards. Shapes: T tokens of R rollouts, one rollout behind the
// other. All fp64, on any device. No call but lower_rewards() waits for the device.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "convoy/core/settings/policy_settings.h"

namespace convoy::objectives {

// The tokens of texts under three models.
struct PolicyTokens {
  at::Tensor log_probability_T;  // by the model that trains
  at::Tensor drawn_T;            // by the model that drew the texts
  // By the model that trains, before its first step on the texts; undefined: they are drawn_T, as
  // where it draws the texts itself. Without gradient.
  at::Tensor started_T = {};
  at::Tensor reference_T;       // by the reference; undefined: kl_beta is 0
  std::vector<int64_t> starts;  // first token of each rollout, then T
  std::vector<double> advantage_R;
};

struct PolicyLosses {
  // Sum over tokens or rollouts, not divided: the step's sum is divided by policy_divisor() of its
  // global batch. Differentiable in log_probability_T.
  at::Tensor sum;
  at::Tensor divergence_T;  // k3 estimate from the reference; undefined: none. Without gradient
  at::Tensor ratio_T;       // to the model before its first step on the texts. Without gradient
  // Factors of the tokens' losses that correct a drawing model other than the one that trains:
  // started / drawn, at most importance_cap (truncated importance sampling). Undefined: all are 1
  at::Tensor importance_T;
  // bool: the token's gradient was clipped away; for cispo, its weight was clipped
  at::Tensor clipped_T;
};

PolicyLosses policy_losses(const settings::PolicySettings& settings, const PolicyTokens& tokens);

// Divides the sum of all losses of a step. `rollouts`, `tokens`: counts in the step's global
// batch, without masked rollouts. `longest_tokens`: rollout.max_new_tokens.
double policy_divisor(const settings::PolicySettings& settings, int64_t rollouts, int64_t tokens,
                      int64_t longest_tokens);

// Takes kl_beta times the sum over tokens of log(drawn / reference) from the reward of each
// rollout, as in RLOO's paper (arXiv 2402.14740). For losses with PolicyLossFacts::lowers_rewards,
// before advantages_of(); policy_losses() adds no divergence there. Waits for the device.
std::vector<double> lower_rewards(const settings::PolicySettings& settings,
                                  std::span<const double> rewards, const at::Tensor& drawn_T,
                                  const at::Tensor& reference_T, std::span<const int64_t> starts);

// Sample standard deviation: n - 1 in the divisor. 0 for a single value.
double deviation_of(std::span<const double> values);
// The k3 estimate of a divergence (arXiv 2402.03300) of each token whose log-probabilities under
// two models differ by this: exp(difference) - difference - 1, never negative.
at::Tensor k3_divergence(const at::Tensor& difference_T);

// The advantage of each rollout of whole groups of `group_size` rollouts, one group behind the
// other. A group whose rewards are all equal has advantages of exactly 0.
std::vector<double> advantages_of(const settings::PolicySettings& settings,
                                  std::span<const double> rewards, int64_t group_size);

}  // namespace convoy::objectives
