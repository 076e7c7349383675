// SPDX-License-Identifier: Apache-2.0
//
// Learning from rewards of the model's own texts: before a step its problems are answered and
// rewarded (RolloutSource), then the loss of objectives/policy_loss.h is taken over the tokens of
// the texts. The plan deals problems; policy.inner_steps steps learn from the same texts. Loss and
// advantages do not depend on ranks and micro-batches.
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

class PolicyObjective : public TrainingObjective {
 public:
  // All but the settings outlive it. `plan` deals problems.
  PolicyObjective(nn::CausalLm& model, const data::BatchPlan& plan, RolloutSource& source,
                  settings::PolicySettings policy, settings::RolloutSettings rollout,
                  comm::Group& group);

  // The totals of steps include the operations that `flops` counts.
  void count_flops(StepFlops flops) { flops_ = std::move(flops); }

  int64_t steps_per_epoch() const override { return plan_.steps_per_epoch() * policy_.inner_steps; }
  int64_t micro_batches_per_step() const override { return plan_.config().grad_accum; }
  void begin(StepRange steps, int rank) override;
  // Collective where rollouts are drawn: for the first micro-batch of a step.
  MicroBatchPosition take() override;
  MicroBatchLoss loss(const PassOptions& options) override;
  int64_t num_figures() const override;
  std::map<std::string, double> step_figures(const std::vector<double>& sums) const override;
  bool has_validation() const override { return source_.has_validation(); }
  std::optional<Evaluation> evaluate(comm::Group& group,
                                     const std::function<bool()>& stop_requested) override {
    return source_.evaluate(group, stop_requested);
  }
  nn::Residency* residency() const override { return model_.residency(); }
  at::Device device() const override { return model_.device(); }

 private:
  int64_t step() const;                 // the step of the micro-batch that take() returns next
  data::StepPosition position() const;  // the position of its problems
  void draw();
  void share(const data::StepPosition& position);
  void count(const std::vector<RolloutSummary>& all, const std::vector<double>& advantages);
  bool is_masked(bool is_truncated) const;
  // False: the rollout brings no gradient, so its passes are left out.
  bool is_learnt(bool is_truncated, double advantage) const;
  // Places in `rollouts_` that a micro-batch learns from.
  std::vector<size_t> places_of(int64_t micro_batch) const;
  at::Tensor started(const at::Tensor& log_probability_N);

  nn::CausalLm& model_;
  const data::BatchPlan& plan_;
  RolloutSource& source_;
  const settings::PolicySettings policy_;
  const settings::RolloutSettings rollout_;
  comm::Group& group_;
  StepFlops flops_;
  StepRange steps_;
  int rank_ = 0;
  int64_t taken_ = 0;              // micro-batches since steps_.first
  int64_t drawn_turn_ = -1;        // the turn of `rollouts_`: steps divided by inner_steps
  std::vector<Rollout> rollouts_;  // this rank's
  StepTotals totals_;
  std::map<std::string, double> figures_;  // figures of the rollouts of all ranks
  // The micro-batch taken last.
  std::optional<MicroBatch> batch_;
  std::vector<Rollout> batch_rollouts_;
  std::vector<size_t> batch_places_;  // where `rollouts_` has them
  bool is_first_step_ = true;         // the batch is in the first step on its texts
};

}  // namespace convoy::train
