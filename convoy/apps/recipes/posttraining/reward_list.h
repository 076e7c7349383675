// SPDX-License-Identifier: Apache-2.0
//
// The rewards of a configuration, asked for texts by a training and by `convoy eval`, and the
// figures of an evaluation by them. One thread, but for RewardList::ask().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convoy/apps/recipes/posttraining/rollout_problems.h"
#include "convoy/core/config/field.h"
#include "convoy/core/settings/reward_settings.h"
#include "convoy/farm/rewards/reward.h"
#include "convoy/train/comm/group.h"
#include "convoy/train/loop/training_objective.h"

namespace convoy::recipes {

// A text of the model as rewards get it.
struct AnswerFacts {
  std::string text;  // without end token and special tokens
  int64_t tokens = 0;
  bool is_truncated = false;
  int64_t sample = 0;
};
rewards::JudgedText judged_text(const RolloutProblem& problem, const AnswerFacts& answer);

class RewardList {
 public:
  // `list`: the setting `reward`. Starts programs and asks judges for their models. Throws
  // ConfigError, DataError, NetworkError.
  explicit RewardList(const config::JsonList& list);

  size_t size() const { return rewards_.size(); }
  const std::vector<std::string>& names() const { return names_; }
  // The place of the first reward that checks answers; none: there is none.
  std::optional<size_t> place_of_answers() const;

  rewards::Asking asking(size_t part) const { return rewards::asking_of(settings_[part]); }

  // Asks one reward. Blocks. Different rewards may be asked on different threads. As
  // rewards::Reward::ask(); without texts nothing is asked. Throws DataError also for a number that
  // is too large for a mean; numbers of a list are taken after all of them were looked at.
  void ask(size_t part, const std::vector<rewards::JudgedText>& texts,
           const std::function<bool()>& stop_requested, const rewards::TakeValue& take);
  // All rewards of each text. Blocks.
  std::vector<std::vector<double>> values(const std::vector<rewards::JudgedText>& texts,
                                          const std::function<bool()>& stop_requested);
  // The reward of a text: the weighted sum.
  double weighed(const std::vector<double>& rewards) const;

 private:
  const std::vector<settings::RewardSettings> settings_;
  std::vector<std::unique_ptr<rewards::Reward>> rewards_;
  std::vector<std::string> names_;
};

// An answer to a problem of an evaluation, with its rewards.
struct RewardedAnswer {
  int64_t problem = 0;
  int64_t tokens = 0;
  double loss = 0;  // the sum over its tokens, where the evaluation has a loss of its own
  std::vector<double> rewards;
};

// Collective. The figures of an evaluation of `num_problems` problems, each answered by one rank:
// equal for every number of ranks. The loss is the mean reward, negated, or with `has_losses` the
// mean of the answers' losses over all their tokens. Without seconds.
train::Evaluation rewarded_evaluation(const std::vector<RewardedAnswer>& own, int64_t num_problems,
                                      const RewardList& rewards, comm::Group& group,
                                      bool has_losses = false);

}  // namespace convoy::recipes
