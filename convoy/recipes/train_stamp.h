// SPDX-License-Identifier: Apache-2.0
//
// What a resumed run must share with the checkpoint it continues, and how it takes the values over.
#pragma once

#include <string>
#include <vector>

#include "convoy/checkpoint/checkpoint.h"
#include "convoy/data/encode_splits.h"
#include "convoy/nn/causal_lm.h"
#include "convoy/recipes/loaded_model.h"
#include "convoy/settings/train_settings.h"

namespace convoy::recipes {

checkpoint::Stamp train_stamp(const settings::TrainSettings& settings, const LoadedModel& base,
                              const data::EncodedSplits& splits, const std::string& dtype,
                              int64_t world_size);

// Copies the checkpoint's values into `parameters`. Throws CheckpointError on a missing or misshapen tensor.
void restore_parameters(const std::vector<nn::NamedTensor>& parameters, const std::string& group,
                        const checkpoint::LoadedCheckpoint& loaded);

}  // namespace convoy::recipes
