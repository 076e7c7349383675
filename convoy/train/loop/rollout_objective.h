// SPDX-License-Identifier: Apache-2.0
//
// Learning from the model's own texts, whatever the loss: before a step its problems are answered
// (RolloutSource), then the loss is taken over the texts. The plan deals problems; several steps in
// a row may learn from the same texts. Nothing depends on ranks and micro-batches.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "convoy/core/settings/policy_settings.h"
#include "convoy/data/datasets/batches/batch_plan.h"
#include "convoy/model/nn/causal_lm.h"
#include "convoy/train/comm/group.h"
#include "convoy/train/loop/rollout_summary.h"
#include "convoy/train/loop/rollouts.h"
#include "convoy/train/loop/step_batches.h"
#include "convoy/train/loop/training_objective.h"

namespace convoy::train {

class RolloutObjective : public TrainingObjective {
 public:
  // The totals of steps include the operations that `flops` counts.
  void count_flops(StepFlops flops) { flops_ = std::move(flops); }

  int64_t steps_per_epoch() const override { return plan_.steps_per_epoch() * steps_of_turn_; }
  int64_t micro_batches_per_step() const override { return plan_.config().grad_accum; }
  void begin(StepRange steps, int rank) override;
  // Collective where rollouts are drawn: for the first micro-batch of a step.
  MicroBatchPosition take() override;
  std::map<std::string, double> step_figures(const std::vector<double>& /*sums*/) const override {
    return figures_;
  }
  bool has_validation() const override { return source_.has_validation(); }
  std::optional<Evaluation> evaluate(comm::Group& group,
                                     const std::function<bool()>& stop_requested) override {
    return source_.evaluate(group, stop_requested, {});
  }
  nn::Residency* residency() const override { return model_.residency(); }
  at::Device device() const override { return model_.device(); }

 protected:
  // All but the settings outlive it. `plan` deals problems. `steps_of_turn`: optimizer steps that
  // learn from the same texts.
  RolloutObjective(nn::CausalLm& model, const data::BatchPlan& plan, RolloutSource& source,
                   settings::RolloutSettings rollout, int64_t steps_of_turn, comm::Group& group);

  // The rewards of this rank's rollouts that are compared within groups.
  virtual std::vector<double> compared_rewards(const std::vector<Rollout>& rollouts) const;
  // Decides what the step learns from its texts. `all`: summaries of the rollouts of all ranks by
  // slot, whole groups one behind the other. `own`: this rank's rollouts, `slots` their places in
  // `all`. May set the advantages of `own`.
  struct Learnt {
    double weight = 0;                // StepTotals::weight
    std::vector<int64_t> slots = {};  // the rollouts that bring a gradient
  };
  virtual Learnt choose(const std::vector<RolloutSummary>& all, std::vector<Rollout>& own,
                        const std::vector<int64_t>& slots) = 0;
  // False: the rollout brings no gradient, so its passes are left out.
  virtual bool is_learnt(const Rollout& rollout) const = 0;

  nn::CausalLm& model() const { return model_; }
  RolloutSource& source() const { return source_; }
  const settings::RolloutSettings& rollout_settings() const { return rollout_; }
  // The micro-batch taken last, and its rollouts in the order of its rows.
  const MicroBatch& micro_batch() const { return *batch_; }
  const std::vector<Rollout>& batch_rollouts() const { return batch_rollouts_; }
  // Where the rollout batch_rollouts()[at] is kept for further steps on the same texts.
  Rollout& kept_rollout(size_t at) { return rollouts_[batch_places_[at]]; }
  // True: the micro-batch is in the first step on its texts.
  bool begins_turn() const { return begins_turn_; }
  // A forward pass that draws no dropout and no noise: the model that learns is the one that drew
  // the texts.
  static PassOptions without_noise(const PassOptions& options);

 private:
  int64_t step() const;                 // the step of the micro-batch that take() returns next
  data::StepPosition position() const;  // the position of its problems
  void draw();
  void share(const data::StepPosition& position);
  // Places in `rollouts_` that a micro-batch learns from.
  std::vector<size_t> places_of(int64_t micro_batch) const;

  nn::CausalLm& model_;
  const data::BatchPlan& plan_;
  RolloutSource& source_;
  const settings::RolloutSettings rollout_;
  const int64_t steps_of_turn_;
  comm::Group& group_;
  StepFlops flops_;
  StepRange steps_;
  int rank_ = 0;
  int64_t taken_ = 0;              // micro-batches since steps_.first
  int64_t drawn_turn_ = -1;        // the turn of `rollouts_`: steps divided by steps_of_turn_
  std::vector<Rollout> rollouts_;  // this rank's
  StepTotals totals_;
  std::map<std::string, double> figures_;  // figures of the rollouts of all ranks
  std::optional<MicroBatch> batch_;
  std::vector<Rollout> batch_rollouts_;
  std::vector<size_t> batch_places_;  // where `rollouts_` has them
  bool begins_turn_ = true;
};

}  // namespace convoy::train
