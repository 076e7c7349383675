// SPDX-License-Identifier: Apache-2.0
//
// `convoy eval` of a configuration that learns from rewards: the figures of the training's own
// evaluations.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/apps/recipes/rank_share.h"
#include "convoy/core/base/log.h"
#include "convoy/core/settings/command_flags.h"
#include "convoy/core/settings/train_settings.h"

namespace convoy::recipes {

struct RewardsEvaluation {
  nlohmann::json figures;
  // One per problem, for samples.jsonl: input, pred, ref, reward, rewards. On the leading rank.
  std::vector<std::string> lines = {};
};

// Collective. Blocks. Answers the problems of `file` greedily, with the prompt of the training,
// and asks its rewards. `limit`: the first problems; 0 = all. Throws ConfigError, DataError,
// NetworkError.
RewardsEvaluation evaluate_rewards(RankShare& share, OpenedModel opened,
                                   const settings::TrainSettings& settings,
                                   const settings::EngineFlags& engine, const std::string& file,
                                   int64_t limit, const Log& log);

}  // namespace convoy::recipes
