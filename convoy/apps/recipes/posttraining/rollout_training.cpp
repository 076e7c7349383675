// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/posttraining/rollout_training.h"

#include "convoy/apps/recipes/posttraining/teacher.h"
#include "convoy/train/loop/distill_objective.h"
#include "convoy/train/loop/policy_objective.h"

namespace convoy::recipes {
namespace {

// An objective keeps references to its rollouts, so they are made before it.
struct RolloutsBeforeObjective {
  EngineRollouts rollouts;
};

class RewardedTraining final : private RolloutsBeforeObjective, public train::PolicyObjective {
 public:
  RewardedTraining(const EngineRolloutsParts& parts, const data::BatchPlan& plan)
      : RolloutsBeforeObjective{EngineRollouts(parts)},
        PolicyObjective(*parts.base.model, plan, rollouts, parts.settings.policy,
                        parts.settings.rollout, parts.group) {}
};

struct TeacherBeforeObjective {
  EngineRollouts rollouts;
  std::optional<LoadedModel> teacher;  // none: a server has it
};

class TaughtTraining final : private TeacherBeforeObjective, public train::DistillObjective {
 public:
  TaughtTraining(const EngineRolloutsParts& parts, const data::BatchPlan& plan)
      : TeacherBeforeObjective{EngineRollouts(parts), parts.settings.has_served_teacher()
                                                          ? std::optional<LoadedModel>()
                                                          : load_teacher(parts.run)},
        DistillObjective(*parts.base.model, teacher ? teacher->model.get() : nullptr, plan,
                         rollouts,
                         {.distill = parts.settings.distill,
                          .eval_texts = parts.settings.train.rows_of_evaluation_batch()},
                         parts.settings.rollout, parts.group) {}
};

}  // namespace

std::unique_ptr<train::RolloutObjective> make_rollout_objective(const EngineRolloutsParts& parts,
                                                                const data::BatchPlan& plan) {
  if (parts.settings.task_facts().has_teacher) return std::make_unique<TaughtTraining>(parts, plan);
  return std::make_unique<RewardedTraining>(parts, plan);
}

}  // namespace convoy::recipes
