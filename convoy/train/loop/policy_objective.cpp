// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/loop/policy_objective.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "convoy/core/base/error.h"
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

data::EncodedRow encoded(const Rollout& rollout) {
  data::EncodedRow row{.ids = rollout.ids,
                       .supervised = std::vector<uint8_t>(rollout.ids.size(), 1)};
  std::fill_n(row.supervised.begin(), rollout.prompt_tokens, uint8_t{0});
  return row;
}

// Returns the rewards that advantages are made of: as they are, or for RLOO less the divergence
// from the reference.
std::vector<double> compared_rewards(const settings::PolicySettings& policy,
                                     const std::vector<Rollout>& rollouts) {
  std::vector<double> rewards;
  std::vector<int64_t> starts = {0};
  for (const Rollout& rollout : rollouts) {
    rewards.push_back(rollout.reward);
    starts.push_back(starts.back() + rollout.text_tokens());
  }
  if (policy.kl_beta == 0 || !settings::policy_loss_named(policy.loss).lowers_rewards)
    return rewards;
  return objectives::lower_rewards(policy, rewards, tensor_of(rollouts, &Rollout::drawn, at::kCPU),
                                   tensor_of(rollouts, &Rollout::reference, at::kCPU), starts);
}

}  // namespace

PolicyObjective::PolicyObjective(nn::CausalLm& model, const data::BatchPlan& plan,
                                 RolloutSource& source, settings::PolicySettings policy,
                                 settings::RolloutSettings rollout, comm::Group& group)
    : model_(model),
      plan_(plan),
      source_(source),
      policy_(std::move(policy)),
      rollout_(std::move(rollout)),
      group_(group) {
  CONVOY_INVARIANT(plan.config().rows_of_item == 1 && !plan.config().packing,
                   "the plan deals {} rows together", plan.config().rows_of_item);
}

void PolicyObjective::begin(StepRange steps, int rank) {
  steps_ = steps;
  rank_ = rank;
  taken_ = 0;
  drawn_turn_ = -1;
}

int64_t PolicyObjective::step() const { return steps_.first + taken_ / micro_batches_per_step(); }

data::StepPosition PolicyObjective::position() const {
  const int64_t turn = step() / policy_.inner_steps;
  return {turn / plan_.steps_per_epoch(), turn % plan_.steps_per_epoch()};
}

bool PolicyObjective::is_masked(bool is_truncated) const {
  return policy_.mask_truncated && is_truncated;
}

bool PolicyObjective::is_learnt(bool is_truncated, double advantage) const {
  const bool is_held =
      policy_.kl_beta > 0 && !settings::policy_loss_named(policy_.loss).lowers_rewards;
  return !is_masked(is_truncated) && (advantage != 0 || is_held);
}

// Draws the rollouts of this rank's share of a step: of all its micro-batches together, so that the
// engine is full.
void PolicyObjective::draw() {
  const int64_t first_step = step() - step() % policy_.inner_steps;
  const RolloutTurn turn{
      .first_step = first_step, .position = position(), .begins = step() == first_step};
  std::vector<int64_t> problems;
  for (int64_t number = 0; number < micro_batches_per_step(); ++number)
    for (const int64_t problem : plan_.rows(turn.position, number, rank_))
      problems.push_back(problem);
  rollouts_ = source_.draw(turn, problems);
  // A run that goes on between two steps on the same texts has only the engine's log-probabilities
  // left of the model before the first one; on CPUs they are its own.
  if (!turn.begins)
    for (Rollout& rollout : rollouts_) rollout.started = rollout.drawn;
  CONVOY_INVARIANT(std::ssize(rollouts_) == std::ssize(problems) * rollout_.samples,
                   "{} rollouts of {} problems", rollouts_.size(), problems.size());
  group_.wait_for_all();  // a rank may draw for longer than a collective waits
  share(turn.position);
  source_.record(turn, rollouts_, /*teaches=*/totals_.weight > 0);
  drawn_turn_ = step() / policy_.inner_steps;
}

// Collective. Advantages, totals and figures over the rollouts of all ranks, in an order that does
// not depend on ranks and micro-batches.
void PolicyObjective::share(const data::StepPosition& position) {
  const std::vector<int64_t> order = plan_.rows(position);
  std::unordered_map<int64_t, int64_t> place;
  for (size_t at = 0; at < order.size(); ++at) place[order[at]] = static_cast<int64_t>(at);
  const auto slot_of = [&](const Rollout& rollout) {
    return place.at(rollout.problem) * rollout_.samples + rollout.sample;
  };
  const std::vector<double> compared = compared_rewards(policy_, rollouts_);
  std::vector<RolloutSummary> own;
  for (size_t at = 0; at < rollouts_.size(); ++at)
    own.push_back(summary_of(rollouts_[at], slot_of(rollouts_[at]), compared[at]));
  const std::vector<RolloutSummary> all =
      all_summaries(group_, own, order.size() * static_cast<size_t>(rollout_.samples),
                    source_.reward_names().size());
  std::vector<double> of_all;
  for (const RolloutSummary& summary : all) of_all.push_back(summary.compared);
  const std::vector<double> advantages =
      objectives::advantages_of(policy_, of_all, rollout_.samples);
  for (Rollout& rollout : rollouts_)
    rollout.advantage = advantages[static_cast<size_t>(slot_of(rollout))];
  count(all, advantages);
  figures_ = rollout_figures(all, rollout_.samples, source_.reward_names());
}

void PolicyObjective::count(const std::vector<RolloutSummary>& all,
                            const std::vector<double>& advantages) {
  totals_ = {.rows = std::ssize(all)};
  int64_t counted = 0;  // rollouts that the divisor counts, and their tokens
  int64_t counted_tokens = 0;
  int64_t learnt_tokens = 0;
  std::vector<int64_t> learnt_rows;
  for (size_t slot = 0; slot < all.size(); ++slot) {
    const RolloutSummary& rollout = all[slot];
    const int64_t row_tokens = rollout.prompt_tokens + rollout.text_tokens;
    totals_.tokens += row_tokens;
    totals_.supervised_tokens += rollout.text_tokens;
    if (!is_masked(rollout.is_truncated)) {
      counted += 1;
      counted_tokens += rollout.text_tokens;
    }
    if (!is_learnt(rollout.is_truncated, advantages[slot])) continue;
    learnt_tokens += rollout.text_tokens;
    learnt_rows.push_back(row_tokens);
  }
  if (!learnt_rows.empty())
    totals_.weight =
        objectives::policy_divisor(policy_, counted, counted_tokens, rollout_.max_new_tokens);
  if (flops_) totals_.flops = flops_(learnt_rows, learnt_tokens);
}

std::vector<size_t> PolicyObjective::places_of(int64_t micro_batch) const {
  std::vector<size_t> learnt;
  int64_t before = 0;
  for (int64_t number = 0; number < micro_batch; ++number)
    before += std::ssize(plan_.rows(position(), number, rank_));
  const int64_t groups = std::ssize(plan_.rows(position(), micro_batch, rank_));
  for (int64_t at = before * rollout_.samples; at < (before + groups) * rollout_.samples; ++at)
    if (const Rollout& rollout = rollouts_[static_cast<size_t>(at)];
        is_learnt(rollout.is_truncated, rollout.advantage))
      learnt.push_back(static_cast<size_t>(at));
  return learnt;
}

MicroBatchPosition PolicyObjective::take() {
  if (step() / policy_.inner_steps != drawn_turn_) draw();
  const int64_t number = taken_ % micro_batches_per_step();
  is_first_step_ = step() % policy_.inner_steps == 0;
  batch_places_ = places_of(number);
  batch_rollouts_.clear();
  for (const size_t place : batch_places_) batch_rollouts_.push_back(rollouts_[place]);
  std::vector<data::EncodedRow> rows;
  std::vector<int64_t> all;
  for (const Rollout& rollout : batch_rollouts_) {
    all.push_back(std::ssize(rows));
    rows.push_back(encoded(rollout));
  }
  batch_ = MicroBatch{
      .place = {.position = {step() / steps_per_epoch(), step() % steps_per_epoch()},
                .number = number,
                .step = totals_,
                .has_rows = !rows.empty()},
      .batch = assemble_batch(data::TokenDataset::from_rows(rows), all, model_.device())};
  ++taken_;
  return batch_->place;
}

// The log-probabilities of the micro-batch before the first step on its texts. They are kept for
// further steps, which waits for the device.
at::Tensor PolicyObjective::started(const at::Tensor& log_probability_N) {
  if (!is_first_step_)
    return tensor_of(batch_rollouts_, &Rollout::started, log_probability_N.device());
  if (policy_.inner_steps > 1) {
    const at::Tensor found = log_probability_N.detach().to(at::kCPU, at::kFloat);
    const float* next = found.const_data_ptr<float>();
    for (const size_t place : batch_places_) {
      Rollout& rollout = rollouts_[place];
      rollout.started.assign(next, next + rollout.text_tokens());
      next += rollout.text_tokens();
    }
  }
  return log_probability_N.detach();
}

// The passes draw no dropout and no noise, and have the temperature of the draws: the distribution
// that learns is the one that the texts were drawn from.
MicroBatchLoss PolicyObjective::loss(const PassOptions& options) {
  PassOptions exact = options;
  exact.draw_key.reset();
  exact.noise_alpha = 0;
  exact.temperature = rollout_.temperature;
  return loss_of_tokens(model_, *batch_, exact, [this](const at::Tensor& log_probability_N) {
    const at::Device device = log_probability_N.device();
    objectives::PolicyTokens tokens{.log_probability_T = log_probability_N,
                                    .drawn_T = tensor_of(batch_rollouts_, &Rollout::drawn, device),
                                    .started_T = started(log_probability_N),
                                    .reference_T = {},
                                    .starts = {0},
                                    .advantage_R = {}};
    if (policy_.kl_beta > 0)
      tokens.reference_T = tensor_of(batch_rollouts_, &Rollout::reference, device);
    for (const Rollout& rollout : batch_rollouts_) {
      tokens.starts.push_back(tokens.starts.back() + rollout.text_tokens());
      tokens.advantage_R.push_back(rollout.advantage);
    }
    const objectives::PolicyLosses losses = objectives::policy_losses(policy_, tokens);
    return AnswersLoss{.sum = losses.sum, .figures = token_figures(tokens, losses)};
  });
}

int64_t PolicyObjective::num_figures() const { return NumPolicyFigures; }

std::map<std::string, double> PolicyObjective::step_figures(const std::vector<double>& sums) const {
  std::map<std::string, double> named = figures_;
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
