// SPDX-License-Identifier: Apache-2.0
//
// Measures the preferences of a model over pairs of completions or over single completions, with
// the figures that a training on preferences logs.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/apps/recipes/rank_share.h"
#include "convoy/core/base/log.h"
#include "convoy/core/settings/train_settings.h"
#include "convoy/data/datasets/tokens/token_dataset.h"

namespace convoy::recipes {

// Collective. Blocks. Returns loss, rewards, margins and accuracy of `rows`. For a task with pairs,
// rows 2i and 2i + 1 are pair i. The reference model (preference.reference) is loaded, evaluated
// and released before `evaluated` is loaded. `batch_items`: number of pairs or rows that are
// computed together. Throws ConfigError for a reference with another tokenizer, DataError.
nlohmann::json evaluate_preferences(RankShare& share, OpenedModel evaluated,
                                    const settings::TrainSettings& settings,
                                    const data::TokenDataset& rows, int64_t batch_items,
                                    const Log& log);

}  // namespace convoy::recipes
