// SPDX-License-Identifier: Apache-2.0
//
// What a resumed run must share with the checkpoint it continues, and how it takes the values over.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "convoy/checkpoint/checkpoint.h"
#include "convoy/data/batch_plan.h"
#include "convoy/data/encode_splits.h"
#include "convoy/nn/causal_lm.h"
#include "convoy/recipes/loaded_model.h"
#include "convoy/settings/train_settings.h"

namespace convoy::recipes {

checkpoint::Stamp train_stamp(const settings::TrainSettings& settings, const LoadedModel& base,
                              const data::EncodedSplits& splits, const std::string& dtype,
                              const data::BatchPlanConfig& batch);

// The global batch of the checkpoint, which a run that continues it on any number of ranks keeps. None when the settings ask for another
// micro-batch or accumulation than it was made with, or `forced` says that it may change.
std::optional<int64_t> kept_global_batch(const checkpoint::Stamp& saved,
                                         const settings::TrainSettings& settings,
                                         const std::vector<std::string>& forced);

// Copies the checkpoint's values into `parameters`. Throws CheckpointError on a missing or misshapen tensor.
void restore_parameters(const std::vector<nn::NamedTensor>& parameters, const std::string& group,
                        const checkpoint::LoadedCheckpoint& loaded);

}  // namespace convoy::recipes
