// SPDX-License-Identifier: Apache-2.0
//
// The facts that a resumed run must share with its checkpoint, and how it restores the values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/core/settings/train_settings.h"
#include "convoy/data/datasets/batches/batch_plan.h"
#include "convoy/data/datasets/encoding/encode_splits.h"
#include "convoy/model/nn/causal_lm.h"
#include "convoy/train/checkpoint/checkpoint.h"
#include "convoy/train/optim/adamw.h"
#include "convoy/train/parallel/strategy.h"

namespace convoy::recipes {

// A field of the stamp: the instant that strftime_now has in the run's chat template.
constexpr const char* kTemplateClock = "template_clock";

// Adds every setting to `stamp`, by value, so that no setting can change silently: a difference is
// applied and logged. Training settings go by their short names ("learning_rate"), others by their
// paths. Excludes how the run starts, names and paths (is_own_to_a_node); train_stamp() compares
// the content of those.
void stamp_settings(checkpoint::Stamp& stamp, const settings::TrainSettings& settings);

// Adds the form in which the optimizer keeps its states. A checkpoint preserves that form.
void stamp_optimizer(checkpoint::Stamp& stamp, const settings::TrainingSettings& train);

// The stamp of a run: its settings, and facts whose change is refused (tensors, data, seed, model).
// A fact overrides a setting of the same name.
checkpoint::Stamp train_stamp(const settings::TrainSettings& settings, const LoadedModel& base,
                              const data::EncodedSplits& splits, const std::string& dtype,
                              const std::string& device_kind, const data::BatchPlanConfig& batch);

// `saved` plus the settings that its version of Convoy did not have, when the run leaves them at
// their default.
checkpoint::Stamp with_later_settings(checkpoint::Stamp saved, const checkpoint::Stamp& current);

// The global batch of the checkpoint, which a run keeps when it resumes on any number of ranks.
// Empty when the settings request another micro-batch or accumulation than the checkpoint's, or
// when `forced` allows a change.
std::optional<int64_t> kept_global_batch(const checkpoint::Stamp& saved,
                                         const settings::TrainSettings& settings,
                                         const std::vector<std::string>& forced);

// The optimizer state of this rank's shards of the parameters; for replicas, the whole state of the
// checkpoint. Throws CheckpointError on a missing or misshapen tensor.
std::vector<optim::NamedState> saved_state(const checkpoint::GroupReader& reader,
                                           const optim::AdamW& optimizer,
                                           const std::vector<parallel::ParameterShard>& shards);

// Copies the checkpoint's values into `parameters`. Throws CheckpointError on a missing or
// misshapen tensor.
void restore_parameters(const std::vector<nn::NamedTensor>& parameters,
                        const checkpoint::GroupReader& reader);
// Makes the saved values the source of those `parameters` that `values` still has to read.
void defer_to_saved(nn::DeferredValues& values, const std::vector<nn::NamedTensor>& parameters,
                    std::shared_ptr<const checkpoint::GroupReader> reader);
// Copies the checkpoint's values into this rank's shards of the parameters.
void restore_shards(const std::vector<parallel::ParameterShard>& shards,
                    const checkpoint::GroupReader& reader);

}  // namespace convoy::recipes
