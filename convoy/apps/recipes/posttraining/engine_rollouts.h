// SPDX-License-Identifier: Apache-2.0
//
// Rollouts of the trainer's own weights: the generation engine draws them in the trainer's process,
// rewards and a server's teacher are asked, and the ledger keeps all. The KV cache exists while
// texts are drawn only.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "convoy/apps/recipes/posttraining/drawing_overlap.h"
#include "convoy/apps/recipes/posttraining/reward_list.h"
#include "convoy/apps/recipes/posttraining/rollout_ledger.h"
#include "convoy/apps/recipes/posttraining/rollout_problems.h"
#include "convoy/apps/recipes/posttraining/rollout_reference.h"
#include "convoy/apps/recipes/training/training_run.h"
#include "convoy/farm/remote/served_teacher.h"
#include "convoy/generate/engine/engine.h"
#include "convoy/train/loop/rollouts.h"
#include "convoy/train/parallel/strategy.h"

namespace convoy::recipes {

// Everything but `identity` outlives the rollouts.
struct EngineRolloutsParts {
  const TrainingRun& run;
  const settings::TrainSettings& settings;
  const LoadedModel& base;
  const RolloutProblems& problems;
  parallel::Strategy& strategy;
  comm::Group& group;
  telemetry::TrainingLog* log;  // null on all ranks but 0
  // Everything besides the trained weights that decides a rollout and its rewards.
  std::string identity;
};

class EngineRollouts final : public train::RolloutSource {
 public:
  // Throws ConfigError, DataError on what the rewards read, and as remote::ServedTeacher.
  explicit EngineRollouts(EngineRolloutsParts parts);

  std::vector<train::Rollout> draw(const train::RolloutTurn& turn,
                                   const std::vector<int64_t>& problems) override;
  // Says the first of some steps in a row that teach nothing.
  void record(const train::RolloutTurn& turn, const std::vector<train::Rollout>& rollouts,
              bool teaches) override;
  const std::vector<std::string>& reward_names() const override { return rewards_.names(); }
  std::vector<double> reward_seconds() const override { return reward_seconds_; }
  bool has_validation() const override { return !parts_.problems.val.empty(); }
  // Every problem is answered greedily by one rank and independently of others: the figures are
  // equal for every number of ranks.
  std::optional<train::Evaluation> evaluate(comm::Group& group,
                                            const std::function<bool()>& stop_requested,
                                            const TextLosses& losses) override;

 private:
  using Place = RolloutLedger::Place;

  std::string weights_key() const;
  std::vector<train::Rollout> rollouts_at(const std::vector<Place>& places,
                                          std::map<Place, RecordedRollout> found);
  std::vector<Place> places_of(const std::vector<int64_t>& problems) const;
  // Says what makes a recorded rollout none of this run; empty: nothing.
  std::string fault_of(const train::Rollout& rollout) const;
  // `overlap`: gets the place of each text that ends.
  void draw_texts(const train::RolloutTurn& turn, const std::vector<Place>& places,
                  DrawingOverlap& overlap);
  void ask_reward(size_t part, const std::vector<Place>& places,
                  const std::function<bool()>& stop_requested);
  // The rewards that are elsewhere, by their places among the rewards, then the teacher that a
  // server has.
  std::vector<DrawingOverlap::Part> parts_elsewhere() const;
  // Asks the other rewards, and ends `overlap`. Collective. Throws StopRequest on every rank if one
  // stopped.
  void ask_others(const std::vector<Place>& places, DrawingOverlap& overlap);
  void ask_teacher(const std::vector<Place>& places, const std::function<bool()>& stop_requested);
  void ask_teacher_of(std::vector<train::Rollout>& rollouts,
                      const std::vector<RolloutProblem>& problems);
  remote::TaughtText taught_text(const RolloutProblem& problem,
                                 const train::Rollout& rollout) const;
  bool stop_wanted() const { return parts_.run.stop_requested.load(); }
  // Runs an engine of its own until all ranks have ended their requests.
  bool generate(std::vector<generate::Request> requests,
                const std::function<bool()>& stop_requested,
                const std::function<void(const generate::Completion&)>& take);
  generate::Request request_of(const RolloutProblem& problem) const;

  const EngineRolloutsParts parts_;
  RewardList rewards_;
  std::optional<RolloutReference> reference_;
  std::optional<remote::ServedTeacher> teacher_;  // none: it is in memory, or there is none
  RolloutLedger ledger_;
  std::vector<double> reward_seconds_;  // by reward
  // Guards the ledger and the seconds while others are asked beside the drawing.
  std::mutex ledger_mutex_;
  std::string key_;                 // identifies the weights that drew the rollouts of this turn
  std::vector<std::string> texts_;  // texts of the rollouts that draw() returned last
  bool taught_ = true;              // whether the turn before taught
  bool is_recorded_ = false;        // they come from a finished file
};

}  // namespace convoy::recipes
