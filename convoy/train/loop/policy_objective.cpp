// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/loop/policy_objective.h"

#include <ATen/ATen.h>

#include <array>
#include <utility>

#include "convoy/machine/device/transfer.h"
#include "convoy/train/loop/answer_loss.h"
#include "convoy/train/objectives/policy_loss.h"

namespace convoy::train {
namespace {

// Sums over the learnt tokens of a step, then their number.
enum PolicyFigure {
  NumClippedTokens,
  DivergenceSum,
  EngineDivergence,
  EngineDifference,
  ImportanceSum,
  NumLearntTokens,
  NumPolicyFigures
};

at::Tensor tensor_of(const std::vector<Rollout>& rollouts,
                     const std::vector<float> Rollout::*values, at::Device device) {
  std::vector<double> all;
  for (const Rollout& rollout : rollouts)
    all.insert(all.end(), (rollout.*values).begin(), (rollout.*values).end());
  return device::to_device<double>(all, device);
}

at::Tensor token_figures(const objectives::PolicyTokens& tokens,
                         const objectives::PolicyLosses& losses) {
  const at::Tensor difference_T = tokens.drawn_T - tokens.log_probability_T.detach();
  const at::Tensor none = at::zeros({}, difference_T.options());
  std::array<at::Tensor, NumPolicyFigures> sums;
  sums[NumClippedTokens] = losses.clipped_T.to(at::kDouble).sum();
  sums[DivergenceSum] = losses.divergence_T.defined() ? losses.divergence_T.sum() : none;
  sums[EngineDivergence] = objectives::k3_divergence(difference_T).sum();
  sums[EngineDifference] = difference_T.abs().sum();
  sums[ImportanceSum] = losses.importance_T.defined()
                            ? losses.importance_T.sum()
                            : none + static_cast<double>(difference_T.numel());
  sums[NumLearntTokens] = none + static_cast<double>(difference_T.numel());
  return at::stack(sums);
}

}  // namespace

PolicyObjective::PolicyObjective(nn::CausalLm& model, const data::BatchPlan& plan,
                                 RolloutSource& source, settings::PolicySettings policy,
                                 settings::RolloutSettings rollout, comm::Group& group)
    : RolloutObjective(model, plan, source, std::move(rollout), policy.inner_steps, group),
      policy_(std::move(policy)) {}

bool PolicyObjective::is_masked(bool is_truncated) const {
  return policy_.mask_truncated && is_truncated;
}

bool PolicyObjective::is_learnt(bool is_truncated, double advantage) const {
  const bool is_held =
      policy_.kl_beta > 0 && !settings::policy_loss_named(policy_.loss).lowers_rewards;
  return !is_masked(is_truncated) && (advantage != 0 || is_held);
}

std::vector<double> PolicyObjective::compared_rewards(const std::vector<Rollout>& rollouts) const {
  std::vector<double> rewards = RolloutObjective::compared_rewards(rollouts);
  if (policy_.kl_beta == 0 || !settings::policy_loss_named(policy_.loss).lowers_rewards)
    return rewards;
  std::vector<int64_t> starts = {0};
  for (const Rollout& rollout : rollouts) starts.push_back(starts.back() + rollout.text_tokens());
  return objectives::lower_rewards(policy_, rewards, tensor_of(rollouts, &Rollout::drawn, at::kCPU),
                                   tensor_of(rollouts, &Rollout::reference, at::kCPU), starts);
}

PolicyObjective::Learnt PolicyObjective::choose(const std::vector<RolloutSummary>& all,
                                                std::vector<Rollout>& own,
                                                const std::vector<int64_t>& slots) {
  std::vector<double> of_all;
  for (const RolloutSummary& summary : all) of_all.push_back(summary.compared);
  const std::vector<double> advantages =
      objectives::advantages_of(policy_, of_all, rollout_settings().samples);
  for (size_t at = 0; at < own.size(); ++at)
    own[at].advantage = advantages[static_cast<size_t>(slots[at])];
  Learnt learnt;
  int64_t counted = 0;  // rollouts that the divisor counts, and their tokens
  int64_t counted_tokens = 0;
  for (size_t slot = 0; slot < all.size(); ++slot) {
    const RolloutSummary& rollout = all[slot];
    if (!is_masked(rollout.is_truncated)) {
      counted += 1;
      counted_tokens += rollout.text_tokens;
    }
    if (is_learnt(rollout.is_truncated, advantages[slot]))
      learnt.slots.push_back(static_cast<int64_t>(slot));
  }
  if (!learnt.slots.empty())
    learnt.weight = objectives::policy_divisor(policy_, counted, counted_tokens,
                                               rollout_settings().max_new_tokens);
  return learnt;
}

// The log-probabilities of the micro-batch before the first step on its texts. They are kept for
// further steps, which waits for the device.
at::Tensor PolicyObjective::started(const at::Tensor& log_probability_N) {
  if (!begins_turn())
    return tensor_of(batch_rollouts(), &Rollout::started, log_probability_N.device());
  if (policy_.inner_steps > 1) {
    const at::Tensor found = log_probability_N.detach().to(at::kCPU, at::kFloat);
    const float* next = found.const_data_ptr<float>();
    for (size_t at = 0; at < batch_rollouts().size(); ++at) {
      Rollout& rollout = kept_rollout(at);
      rollout.started.assign(next, next + rollout.text_tokens());
      next += rollout.text_tokens();
    }
  }
  return log_probability_N.detach();
}

// The passes have the temperature of the draws: the distribution that learns is the one that the
// texts were drawn from.
MicroBatchLoss PolicyObjective::loss(const PassOptions& options) {
  const auto of_tokens = [this](const at::Tensor& log_probability_N) {
    const at::Device device = log_probability_N.device();
    const std::vector<Rollout>& rollouts = batch_rollouts();
    objectives::PolicyTokens tokens{.log_probability_T = log_probability_N,
                                    .drawn_T = tensor_of(rollouts, &Rollout::drawn, device),
                                    .started_T = started(log_probability_N),
                                    .reference_T = {},
                                    .starts = {0},
                                    .advantage_R = {}};
    if (policy_.kl_beta > 0) tokens.reference_T = tensor_of(rollouts, &Rollout::reference, device);
    for (const Rollout& rollout : rollouts) {
      tokens.starts.push_back(tokens.starts.back() + rollout.text_tokens());
      tokens.advantage_R.push_back(rollout.advantage);
    }
    const objectives::PolicyLosses losses = objectives::policy_losses(policy_, tokens);
    return AnswersLoss{.sum = losses.sum, .figures = token_figures(tokens, losses)};
  };
  PassOptions exact = without_noise(options);
  exact.temperature = rollout_settings().temperature;
  return loss_of_tokens(model(), micro_batch(), exact, of_tokens);
}

int64_t PolicyObjective::num_figures() const { return NumPolicyFigures; }

std::map<std::string, double> PolicyObjective::step_figures(const std::vector<double>& sums) const {
  std::map<std::string, double> named = RolloutObjective::step_figures(sums);
  if (sums[NumLearntTokens] == 0) return named;
  const auto mean = [&](PolicyFigure figure) { return sums[figure] / sums[NumLearntTokens]; };
  named["clip_ratio"] = mean(NumClippedTokens);
  named["kl_engine_trainer"] = mean(EngineDivergence);
  named["logprob_difference"] = mean(EngineDifference);
  named["sampling/importance_sampling_ratio/mean"] = mean(ImportanceSum);
  if (policy_.kl_beta > 0) named["kl"] = mean(DivergenceSum);
  return named;
}

}  // namespace convoy::train
