// SPDX-License-Identifier: Apache-2.0
//
// The texts of the model that a step of a policy learns from, and the interface to what draws and
// rewards them. Plain data.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "convoy/data/datasets/batches/epoch_order.h"
#include "convoy/data/datasets/tokens/token_dataset.h"
#include "convoy/train/comm/group.h"
#include "convoy/train/loop/training_objective.h"

namespace convoy::train {

// A teacher's distributions at the tokens of a text, each of its likeliest tokens and one outcome
// for all others.
struct TeacherTokens {
  std::vector<int32_t> ids = {};     // distill.top_k for each token of the text, likeliest first
  std::vector<float> logprobs = {};  // one more for each: of these tokens, then of all others
};

// A text of the model for one problem. Log-probabilities are of the tokens of the text, its end
// token included.
struct Rollout {
  int64_t problem = 0;            // row of the plan's data set
  int64_t sample = 0;             // number within the problem's group
  std::vector<int32_t> ids = {};  // the prompt, then the text
  int64_t prompt_tokens = 0;
  std::vector<float> drawn = {};  // under the model that drew the text
  // Under the model that trains, before its first step on the text; set by the objective.
  std::vector<float> started = {};
  std::vector<float> reference = {};  // under the reference; empty: there is none
  TeacherTokens teacher = {};         // as a server says them; empty: no server has the teacher
  std::vector<double> rewards = {};   // one for each of RolloutSource::reward_names()
  double reward = 0;                  // their weighted sum
  bool is_truncated = false;          // the limit of new tokens cut it
  double advantage = 0;               // set by the objective

  int64_t text_tokens() const { return static_cast<int64_t>(ids.size()) - prompt_tokens; }
};

// The rollout as a row whose text is learnt and whose prompt is not.
data::EncodedRow row_of(const Rollout& rollout);

// The step of the plan whose problems are answered, and how its rollouts come about.
struct RolloutTurn {
  int64_t first_step = 0;  // the step that learns from the rollouts first, from 0
  data::StepPosition position;
  // False: the optimizer has stepped on these rollouts before, so they are read back, not drawn.
  bool begins = true;
};

class RolloutSource {
 public:
  virtual ~RolloutSource() = default;

  // Collective. Blocks. The rewarded texts of this rank's `problems`: whole groups in their order,
  // the samples of a group one behind the other. Throws StopRequest on every rank when a stop is
  // requested; what was finished is kept.
  virtual std::vector<Rollout> draw(const RolloutTurn& turn,
                                    const std::vector<int64_t>& problems) = 0;
  // Collective. Called with the advantages of the rollouts that draw() returned last, before the
  // model learns. `teaches`: a rollout of any rank brings a gradient.
  virtual void record(const RolloutTurn& turn, const std::vector<Rollout>& rollouts,
                      bool teaches) = 0;
  // The names of the rewards, for figures.
  virtual const std::vector<std::string>& reward_names() const = 0;
  // For each reward the seconds in which it counted texts of the last draw() on this rank; empty
  // when that draw asked none, because its texts were read back.
  virtual std::vector<double> reward_seconds() const { return {}; }

  virtual bool has_validation() const = 0;
  // The loss of each of this rank's texts: the sum over its tokens. Collective.
  using TextLosses = std::function<std::vector<double>(const std::vector<Rollout>& texts)>;
  // Collective. As TrainingObjective::evaluate(). The loss is the mean of `losses` over all tokens
  // of the answers; where it is empty, the mean reward, negated.
  virtual std::optional<Evaluation> evaluate(comm::Group& group,
                                             const std::function<bool()>& stop_requested,
                                             const TextLosses& losses) = 0;
};

}  // namespace convoy::train
