// SPDX-License-Identifier: Apache-2.0
//
// The formulas come from the papers (settings/policy_settings.h names them). r is the ratio of the
// probabilities under the model that trains and the same model before its first step on the texts,
// which on CPUs is the model that drew them, A the advantage.
// NOTES.md says where TRL 1.16 differs.
#include "convoy/train/objectives/policy_loss.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "convoy/core/base/error.h"

namespace convoy::objectives {
namespace {

using at::Tensor;
using settings::PolicyDivisor;
using settings::PolicyLossFacts;

// Added to a standard deviation, so that rewards that barely differ bring no huge advantages.
// TRL's value.
constexpr double kLeastDeviation = 1e-4;

std::vector<int64_t> lengths_of(std::span<const int64_t> starts) {
  std::vector<int64_t> lengths;
  for (size_t rollout = 0; rollout + 1 < starts.size(); ++rollout)
    lengths.push_back(starts[rollout + 1] - starts[rollout]);
  return lengths;
}

// The sum of each rollout's tokens. Each is a sum by itself, so its value does not depend on the
// rollouts beside it, and has one order of additions on every device.
Tensor sums_of(const Tensor& values_T, const std::vector<int64_t>& lengths) {
  if (lengths.empty()) return values_T;
  std::vector<Tensor> sums;
  for (const Tensor& values : values_T.split_with_sizes(lengths)) sums.push_back(values.sum());
  return at::stack(sums);
}

Tensor on_device_of(const Tensor& tokens_T, const std::vector<double>& values) {
  return at::tensor(values, at::TensorOptions().dtype(at::kDouble))
      .to(tokens_T.device(), /*non_blocking=*/true);
}

// One value per rollout, repeated for each of its tokens.
std::vector<double> for_tokens(const std::vector<double>& values_R,
                               const std::vector<int64_t>& lengths) {
  std::vector<double> values_T;
  for (size_t rollout = 0; rollout < lengths.size(); ++rollout)
    values_T.insert(values_T.end(), static_cast<size_t>(lengths[rollout]), values_R[rollout]);
  return values_T;
}

std::vector<double> inverse_of(const std::vector<int64_t>& lengths) {
  std::vector<double> inverse;
  for (const int64_t length : lengths)
    inverse.push_back(1 / static_cast<double>(std::max<int64_t>(length, 1)));
  return inverse;
}

// The clipped objective, and where it has no gradient. Both of the shape of `ratio`: tokens or
// rollouts.
struct Clipped {
  Tensor loss;
  Tensor is_clipped;
};

// -min(r A, clip(r) A), PPO's (arXiv 1707.06347).
Clipped clipped_ratio(const settings::PolicySettings& settings, const Tensor& ratio,
                      const Tensor& advantage) {
  const double least = 1 - settings.clip_low;
  const double most = 1 + settings.clip_high;
  const Tensor clipped = ratio.clamp(least, most);
  const Tensor held = ratio.detach();
  return {.loss = -at::minimum(ratio * advantage, clipped * advantage),
          .is_clipped = at::logical_or(at::logical_and(held < least, advantage < 0),
                                       at::logical_and(held > most, advantage > 0))};
}

// -min(r, 1 + clip_high) A log p, where the weight has no gradient. The paper has a bound below
// too, and sets it so low that it never acts.
Clipped clipped_weight(const settings::PolicySettings& settings, const Tensor& ratio_T,
                       const Tensor& advantage_T, const Tensor& log_probability_T) {
  const double most = 1 + settings.clip_high;
  const Tensor held_T = ratio_T.detach();
  return {.loss = -held_T.clamp_max(most) * advantage_T * log_probability_T,
          .is_clipped = at::logical_and(held_T > most, advantage_T > 0)};
}

Clipped of_tokens(const settings::PolicySettings& settings, const PolicyTokens& tokens,
                  const Tensor& log_ratio_T, const std::vector<int64_t>& lengths) {
  const Tensor advantage_T = on_device_of(log_ratio_T, for_tokens(tokens.advantage_R, lengths));
  const Tensor ratio_T = log_ratio_T.exp();
  if (settings::policy_loss_named(settings.loss).clips_weight)
    return clipped_weight(settings, ratio_T, advantage_T, tokens.log_probability_T);
  return clipped_ratio(settings, ratio_T, advantage_T);
}

Clipped of_sequences(const settings::PolicySettings& settings,
                     const std::vector<double>& advantage_R, const Tensor& log_ratio_T,
                     const std::vector<int64_t>& lengths) {
  Tensor log_ratio_R = sums_of(log_ratio_T, lengths);
  if (settings::policy_loss_named(settings.loss).takes_mean_ratio)
    log_ratio_R = log_ratio_R * on_device_of(log_ratio_T, inverse_of(lengths));
  return clipped_ratio(settings, log_ratio_R.exp(), on_device_of(log_ratio_T, advantage_R));
}

// Undefined where no factor can differ from 1.
Tensor importance_of(const settings::PolicySettings& settings, const PolicyTokens& tokens) {
  if (!tokens.started_T.defined() || settings.importance_cap == 0) return {};
  return (tokens.started_T - tokens.drawn_T).exp().clamp_max(settings.importance_cap);
}

// The mean factor of each rollout's tokens; exactly 1 where all are 1.
Tensor mean_importance(const Tensor& importance_T, const std::vector<int64_t>& lengths) {
  std::vector<double> counts;
  for (const int64_t length : lengths)
    counts.push_back(static_cast<double>(std::max<int64_t>(length, 1)));
  return sums_of(importance_T, lengths) / on_device_of(importance_T, counts);
}

Tensor repeated(const Tensor& values_R, const std::vector<int64_t>& lengths) {
  if (lengths.empty()) return values_R;
  std::vector<Tensor> values_T;
  for (size_t rollout = 0; rollout < lengths.size(); ++rollout)
    values_T.push_back(values_R[static_cast<int64_t>(rollout)].expand({lengths[rollout]}));
  return at::cat(values_T);
}

void check(const PolicyTokens& tokens) {
  const auto size = static_cast<size_t>(tokens.log_probability_T.numel());
  CONVOY_INVARIANT(!tokens.starts.empty() && tokens.starts.front() == 0 &&
                       static_cast<size_t>(tokens.starts.back()) == size,
                   "{} tokens, {} starts", size, tokens.starts.size());
  CONVOY_INVARIANT(tokens.advantage_R.size() + 1 == tokens.starts.size(),
                   "{} advantages, {} starts", tokens.advantage_R.size(), tokens.starts.size());
}

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Rewards of a group minus their baseline. Means of equal rewards need not be equal to them by
// rounding, so that case is told apart.
std::vector<double> centred(const PolicyLossFacts& facts, std::span<const double> group) {
  std::vector<double> advantages(group.size(), 0);
  if (std::all_of(group.begin(), group.end(), [&](double r) { return r == group.front(); }))
    return advantages;
  const double mean = mean_of(group);
  const auto size = static_cast<double>(group.size());
  // r - (sum - r) / (n - 1) = (r - mean) n / (n - 1)
  const double factor = facts.leaves_one_out ? size / (size - 1) : 1;
  for (size_t rollout = 0; rollout < group.size(); ++rollout)
    advantages[rollout] = (group[rollout] - mean) * factor;
  return advantages;
}

}  // namespace

double deviation_of(std::span<const double> values) {
  if (values.size() < 2) return 0;
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

Tensor k3_divergence(const Tensor& difference_T) { return at::expm1(difference_T) - difference_T; }

PolicyLosses policy_losses(const settings::PolicySettings& settings, const PolicyTokens& tokens) {
  check(tokens);
  const PolicyLossFacts& facts = settings::policy_loss_named(settings.loss);
  const std::vector<int64_t> lengths = lengths_of(tokens.starts);
  const Tensor log_ratio_T =
      tokens.log_probability_T - (tokens.started_T.defined() ? tokens.started_T : tokens.drawn_T);
  // The share of a token in the sum: one over its rollout's tokens where rollouts count alike.
  Tensor weight_T;
  if (facts.divisor == PolicyDivisor::Rollouts)
    weight_T = on_device_of(log_ratio_T, for_tokens(inverse_of(lengths), lengths));
  const auto weighted_sum = [&](const Tensor& values_T) {
    return weight_T.defined() ? (values_T * weight_T).sum() : values_T.sum();
  };

  PolicyLosses losses;
  losses.ratio_T = log_ratio_T.detach().exp();
  losses.importance_T = importance_of(settings, tokens);
  const bool corrects = losses.importance_T.defined();
  if (facts.weighs_sequences) {
    const Clipped clipped_R = of_sequences(settings, tokens.advantage_R, log_ratio_T, lengths);
    losses.sum =
        (corrects ? clipped_R.loss * mean_importance(losses.importance_T, lengths) : clipped_R.loss)
            .sum();
    losses.clipped_T = repeated(clipped_R.is_clipped, lengths);
  } else {
    const Clipped clipped_T = of_tokens(settings, tokens, log_ratio_T, lengths);
    losses.sum = weighted_sum(corrects ? clipped_T.loss * losses.importance_T : clipped_T.loss);
    losses.clipped_T = clipped_T.is_clipped;
  }
  if (tokens.reference_T.defined()) {
    const Tensor divergence_T = k3_divergence(tokens.reference_T - tokens.log_probability_T);
    losses.divergence_T = divergence_T.detach();
    if (settings.kl_beta > 0 && !facts.lowers_rewards)
      losses.sum = losses.sum + settings.kl_beta * weighted_sum(divergence_T);
  }
  return losses;
}

double policy_divisor(const settings::PolicySettings& settings, int64_t rollouts, int64_t tokens,
                      int64_t longest_tokens) {
  // Without any rollout the sum is 0 too.
  switch (settings::policy_loss_named(settings.loss).divisor) {
    case PolicyDivisor::Rollouts:
      return static_cast<double>(std::max<int64_t>(rollouts, 1));
    case PolicyDivisor::Tokens:
      return static_cast<double>(std::max<int64_t>(tokens, 1));
    case PolicyDivisor::LongestTokens:
      return static_cast<double>(std::max<int64_t>(rollouts, 1) * longest_tokens);
  }
  CONVOY_INVARIANT(false, "loss {}", settings.loss);
}

std::vector<double> lower_rewards(const settings::PolicySettings& settings,
                                  std::span<const double> rewards, const Tensor& drawn_T,
                                  const Tensor& reference_T, std::span<const int64_t> starts) {
  CONVOY_INVARIANT(rewards.size() + 1 == starts.size(), "{} rewards, {} starts", rewards.size(),
                   starts.size());
  std::vector<double> lowered(rewards.begin(), rewards.end());
  if (rewards.empty()) return lowered;
  const Tensor sums_R = sums_of(drawn_T - reference_T, lengths_of(starts)).to(at::kCPU);
  for (size_t rollout = 0; rollout < rewards.size(); ++rollout)
    lowered[rollout] -= settings.kl_beta * sums_R.const_data_ptr<double>()[rollout];
  return lowered;
}

std::vector<double> advantages_of(const settings::PolicySettings& settings,
                                  std::span<const double> rewards, int64_t group_size) {
  const auto size = static_cast<size_t>(group_size);
  CONVOY_INVARIANT(group_size >= 2 && rewards.size() % size == 0, "{} rewards, groups of {}",
                   rewards.size(), group_size);
  const PolicyLossFacts& facts = settings::policy_loss_named(settings.loss);
  const std::string_view scale =
      settings.scale_rewards == "auto" ? facts.scale : std::string_view(settings.scale_rewards);
  const double batch_deviation = scale == "batch" ? deviation_of(rewards) : 0;
  std::vector<double> advantages;
  for (size_t start = 0; start < rewards.size(); start += size) {
    const std::span<const double> group = rewards.subspan(start, size);
    const double deviation = scale == "group" ? deviation_of(group) : batch_deviation;
    const double divisor = scale == "none" ? 1 : deviation + kLeastDeviation;
    for (const double advantage : centred(facts, group)) advantages.push_back(advantage / divisor);
  }
  return advantages;
}

}  // namespace convoy::objectives
