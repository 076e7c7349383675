// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/loop/rollout_objective.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "convoy/core/base/error.h"

namespace convoy::train {

RolloutObjective::RolloutObjective(nn::CausalLm& model, const data::BatchPlan& plan,
                                   RolloutSource& source, settings::RolloutSettings rollout,
                                   int64_t steps_of_turn, comm::Group& group)
    : model_(model),
      plan_(plan),
      source_(source),
      rollout_(std::move(rollout)),
      steps_of_turn_(steps_of_turn),
      group_(group) {
  CONVOY_INVARIANT(plan.config().rows_of_item == 1 && !plan.config().packing,
                   "the plan deals {} rows together", plan.config().rows_of_item);
}

void RolloutObjective::begin(StepRange steps, int rank) {
  steps_ = steps;
  rank_ = rank;
  taken_ = 0;
  drawn_turn_ = -1;
}

int64_t RolloutObjective::step() const { return steps_.first + taken_ / micro_batches_per_step(); }

data::StepPosition RolloutObjective::position() const {
  const int64_t turn = step() / steps_of_turn_;
  return {turn / plan_.steps_per_epoch(), turn % plan_.steps_per_epoch()};
}

std::vector<double> RolloutObjective::compared_rewards(const std::vector<Rollout>& rollouts) const {
  std::vector<double> rewards;
  for (const Rollout& rollout : rollouts) rewards.push_back(rollout.reward);
  return rewards;
}

PassOptions RolloutObjective::without_noise(const PassOptions& options) {
  PassOptions exact = options;
  exact.draw_key.reset();
  exact.noise_alpha = 0;
  return exact;
}

// Draws the rollouts of this rank's share of a step: of all its micro-batches together, so that the
// engine is full.
void RolloutObjective::draw() {
  const int64_t first_step = step() - step() % steps_of_turn_;
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
  drawn_turn_ = step() / steps_of_turn_;
}

// Collective. Totals and figures over the rollouts of all ranks, in an order that does not depend
// on ranks and micro-batches.
void RolloutObjective::share(const data::StepPosition& position) {
  const std::vector<int64_t> order = plan_.rows(position);
  std::unordered_map<int64_t, int64_t> place;
  for (size_t at = 0; at < order.size(); ++at) place[order[at]] = static_cast<int64_t>(at);
  const std::vector<double> compared = compared_rewards(rollouts_);
  std::vector<int64_t> slots;
  std::vector<RolloutSummary> own;
  for (size_t at = 0; at < rollouts_.size(); ++at) {
    const Rollout& rollout = rollouts_[at];
    slots.push_back(place.at(rollout.problem) * rollout_.samples + rollout.sample);
    own.push_back(summary_of(rollout, slots.back(), compared[at]));
  }
  const std::vector<RolloutSummary> all =
      all_summaries(group_, own, order.size() * static_cast<size_t>(rollout_.samples),
                    source_.reward_names().size());
  const Learnt learnt = choose(all, rollouts_, slots);
  totals_ = {.rows = std::ssize(all), .weight = learnt.weight};
  for (const RolloutSummary& rollout : all) {
    totals_.tokens += rollout.prompt_tokens + rollout.text_tokens;
    totals_.supervised_tokens += rollout.text_tokens;
  }
  if (flops_) {
    int64_t learnt_tokens = 0;
    std::vector<int64_t> learnt_rows;
    for (const int64_t slot : learnt.slots) {
      const RolloutSummary& rollout = all[static_cast<size_t>(slot)];
      learnt_tokens += rollout.text_tokens;
      learnt_rows.push_back(rollout.prompt_tokens + rollout.text_tokens);
    }
    totals_.flops = flops_(learnt_rows, learnt_tokens);
  }
  figures_ = rollout_figures(all, rollout_.samples, source_.reward_names());
  const std::vector<double> seconds = source_.reward_seconds();
  for (size_t part = 0; part < seconds.size(); ++part)
    figures_[fmt::format("rewards/{}/seconds", source_.reward_names()[part])] = seconds[part];
}

std::vector<size_t> RolloutObjective::places_of(int64_t micro_batch) const {
  std::vector<size_t> learnt;
  int64_t before = 0;
  for (int64_t number = 0; number < micro_batch; ++number)
    before += std::ssize(plan_.rows(position(), number, rank_));
  const int64_t groups = std::ssize(plan_.rows(position(), micro_batch, rank_));
  for (int64_t at = before * rollout_.samples; at < (before + groups) * rollout_.samples; ++at)
    if (is_learnt(rollouts_[static_cast<size_t>(at)])) learnt.push_back(static_cast<size_t>(at));
  return learnt;
}

MicroBatchPosition RolloutObjective::take() {
  if (step() / steps_of_turn_ != drawn_turn_) draw();
  const int64_t number = taken_ % micro_batches_per_step();
  begins_turn_ = step() % steps_of_turn_ == 0;
  batch_places_ = places_of(number);
  batch_rollouts_.clear();
  for (const size_t place : batch_places_) batch_rollouts_.push_back(rollouts_[place]);
  std::vector<data::EncodedRow> rows;
  std::vector<int64_t> all;
  for (const Rollout& rollout : batch_rollouts_) {
    all.push_back(std::ssize(rows));
    rows.push_back(row_of(rollout));
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

}  // namespace convoy::train
