// SPDX-License-Identifier: Apache-2.0
//
// What a resumed run must share with the checkpoint it continues, and how it takes the values over.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/core/settings/train_settings.h"
#include "convoy/data/datasets/batch_plan.h"
#include "convoy/data/datasets/encode_splits.h"
#include "convoy/model/nn/causal_lm.h"
#include "convoy/train/checkpoint/checkpoint.h"
#include "convoy/train/optim/adamw.h"
#include "convoy/train/parallel/strategy.h"

namespace convoy::recipes {

// Every setting of the list, by value, so that none can change unsaid: a difference is applied and
// logged. Settings of training go by their own names ("learning_rate"), others by their paths. Left
// out: how the run starts, and names and places (is_own_to_a_node), whose content train_stamp()
// compares.
void stamp_settings(checkpoint::Stamp& stamp, const settings::TrainSettings& settings);

// In which form the optimizer keeps its states: a checkpoint holds them so.
void stamp_optimizer(checkpoint::Stamp& stamp, const settings::TrainingSettings& train);

// The settings, and what they came to: facts whose change is refused (tensors, data, seed, model),
// which stand above settings of the same name.
checkpoint::Stamp train_stamp(const settings::TrainSettings& settings, const LoadedModel& base,
                              const data::EncodedSplits& splits, const std::string& dtype,
                              const std::string& device_kind, const data::BatchPlanConfig& batch);

// `saved` with the settings that its Convoy did not know yet, where the run leaves them at their
// default.
checkpoint::Stamp with_later_settings(checkpoint::Stamp saved, const checkpoint::Stamp& current);

// The global batch of the checkpoint, which a run that continues it on any number of ranks keeps.
// None when the settings ask for another micro-batch or accumulation than it was made with, or
// `forced` says that it may change.
std::optional<int64_t> kept_global_batch(const checkpoint::Stamp& saved,
                                         const settings::TrainSettings& settings,
                                         const std::vector<std::string>& forced);

// What this rank's shards of the parameters had as their state of the optimizer; of replicas all
// that the checkpoint holds. Throws CheckpointError on a missing or misshapen tensor.
std::vector<optim::NamedState> saved_state(const checkpoint::GroupReader& reader,
                                           const optim::AdamW& optimizer,
                                           const std::vector<parallel::ParameterShard>& shards);

// Copies the checkpoint's values into `parameters`. Throws CheckpointError on a missing or
// misshapen tensor.
void restore_parameters(const std::vector<nn::NamedTensor>& parameters,
                        const checkpoint::GroupReader& reader);
// From now on the values of those among `parameters` that `values` has are the saved ones.
void defer_to_saved(nn::DeferredValues& values, const std::vector<nn::NamedTensor>& parameters,
                    std::shared_ptr<const checkpoint::GroupReader> reader);
// Copies the checkpoint's values into this rank's shards of the parameters.
void restore_shards(const std::vector<parallel::ParameterShard>& shards,
                    const checkpoint::GroupReader& reader);

}  // namespace convoy::recipes
