// SPDX-License-Identifier: Apache-2.0
//
// Preferences of a model over pairs of completions or single ones, as a training of them measures
// them.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/apps/recipes/rank_share.h"
#include "convoy/core/base/log.h"
#include "convoy/core/settings/train_settings.h"
#include "convoy/data/datasets/tokens/token_dataset.h"

namespace convoy::recipes {

// Collective. Blocks. Loss, rewards, margins and accuracy of `rows`, of which rows 2i and 2i + 1
// are pair i where the task of `settings` is one of pairs. The reference that preference.reference
// names is loaded, asked and released before `evaluated` is loaded. `batch_items`: pairs, or rows,
// computed together. Throws ConfigError for a reference of another tokenizer, DataError.
nlohmann::json evaluate_pairs(RankShare& share, OpenedModel evaluated,
                              const settings::TrainSettings& settings,
                              const data::TokenDataset& rows, int64_t batch_items, const Log& log);

}  // namespace convoy::recipes
