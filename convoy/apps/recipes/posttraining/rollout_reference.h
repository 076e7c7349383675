// SPDX-License-Identifier: Apache-2.0
//
// The log-probabilities that a reference gives to the tokens of rollouts: the training's own model
// without its adapter, or another model beside it.
#pragma once

#include <optional>
#include <vector>

#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/apps/recipes/training/training_run.h"
#include "convoy/train/comm/group.h"
#include "convoy/train/loop/rollouts.h"

namespace convoy::recipes {

class RolloutReference {
 public:
  // Loads the model that policy.reference names, if it names one. `base` and `group` outlive it.
  // Throws ConfigError for another tokenizer, or for a base that is not in memory.
  RolloutReference(const TrainingRun& run, const LoadedModel& base, comm::Group& group);

  // Collective. Sets the reference of each rollout, at the temperature of the draws. `together`:
  // rollouts of one pass.
  void score(std::vector<train::Rollout*> rollouts, int64_t together);

 private:
  void score_batch(nn::CausalLm& model, const std::vector<train::Rollout*>& rollouts) const;

  const LoadedModel& base_;
  comm::Group& group_;
  const double temperature_;  // the draws' own
  std::optional<LoadedModel> other_;
};

}  // namespace convoy::recipes
