// SPDX-License-Identifier: Apache-2.0
//
// The objectives of tasks that learn from rollouts (settings::TaskData::Rollouts), one of which a
// training has.
#pragma once

#include <memory>

#include "convoy/apps/recipes/posttraining/engine_rollouts.h"
#include "convoy/data/datasets/batches/batch_plan.h"
#include "convoy/train/loop/rollout_objective.h"

namespace convoy::recipes {

// `parts` and `plan` outlive the result as they outlive EngineRollouts. Throws what making rollouts
// and loading other models throws.
std::unique_ptr<train::RolloutObjective> make_rollout_objective(const EngineRolloutsParts& parts,
                                                                const data::BatchPlan& plan);

}  // namespace convoy::recipes
