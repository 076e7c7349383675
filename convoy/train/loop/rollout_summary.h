// SPDX-License-Identifier: Apache-2.0
//
// Summaries of a step's rollouts that all ranks exchange: enough for advantages, the divisor of the
// loss, and the figures of the step.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "convoy/train/comm/group.h"
#include "convoy/train/loop/rollouts.h"

namespace convoy::train {

struct RolloutSummary {
  int64_t slot = -1;  // its place among the rollouts of the step; below 0: not known
  double reward = 0;
  double compared = 0;  // the reward that the advantage is made of: for RLOO less the divergence
  int64_t prompt_tokens = 0;
  int64_t text_tokens = 0;
  bool is_truncated = false;
  double surprise = 0;  // the sum of -log p of its tokens
  std::vector<double> rewards = {};
};

RolloutSummary summary_of(const Rollout& rollout, int64_t slot, double compared);

// Collective. The summaries of all ranks by slot; each of `num_slots` comes from one rank.
std::vector<RolloutSummary> all_summaries(comm::Group& group,
                                          const std::vector<RolloutSummary>& own, size_t num_slots,
                                          size_t num_rewards);

// The figures of a step's rollouts, under TRL's names where it has them: without rewards none of
// rewards. `all`: whole groups of `group_size`, one behind the other.
std::map<std::string, double> rollout_figures(std::span<const RolloutSummary> all,
                                              int64_t group_size,
                                              const std::vector<std::string>& reward_names);

}  // namespace convoy::train
