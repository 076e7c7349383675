// SPDX-License-Identifier: Apache-2.0
//
// Learning from rewards of the model's own texts: the loss of objectives/policy_loss.h over the
// tokens of the texts. policy.inner_steps steps learn from the same texts.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "convoy/train/loop/rollout_objective.h"

namespace convoy::train {

class PolicyObjective : public RolloutObjective {
 public:
  // All but the settings outlive it. `plan` deals problems.
  PolicyObjective(nn::CausalLm& model, const data::BatchPlan& plan, RolloutSource& source,
                  settings::PolicySettings policy, settings::RolloutSettings rollout,
                  comm::Group& group);

  MicroBatchLoss loss(const PassOptions& options) override;
  int64_t num_figures() const override;
  std::map<std::string, double> step_figures(const std::vector<double>& sums) const override;

 protected:
  // As they are, or for RLOO less the divergence from the reference.
  std::vector<double> compared_rewards(const std::vector<Rollout>& rollouts) const override;
  Learnt choose(const std::vector<RolloutSummary>& all, std::vector<Rollout>& own,
                const std::vector<int64_t>& slots) override;
  bool is_learnt(const Rollout& rollout) const override {
    return is_learnt(rollout.is_truncated, rollout.advantage);
  }

 private:
  bool is_masked(bool is_truncated) const;
  bool is_learnt(bool is_truncated, double advantage) const;
  at::Tensor started(const at::Tensor& log_probability_N);

  const settings::PolicySettings policy_;
};

}  // namespace convoy::train
