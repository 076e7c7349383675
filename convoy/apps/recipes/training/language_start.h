// SPDX-License-Identifier: Apache-2.0
//
// The start of a language model's training: a rank finds model, rows, the parameters that train,
// the strategy and the checkpoint to go on from, and settles the batch.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "convoy/apps/recipes/auto_batch.h"
#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/apps/recipes/questions.h"
#include "convoy/apps/recipes/training/joined_training.h"
#include "convoy/data/datasets/batch_plan.h"
#include "convoy/data/datasets/encode_splits.h"
#include "convoy/model/sizing/memory_plan.h"
#include "convoy/train/loop/step_batches.h"

namespace convoy::recipes {

// A model that is an adapter's folder becomes its base and the adapter that training goes on with.
// Throws ConfigError.
settings::TrainSettings with_adapter_start(settings::TrainSettings settings, const Log& log);

// Without values where ranks may come to share them. Throws DataError, ConfigError.
LoadedModel load_base(const TrainingRun& run);

struct TrainedParameters {
  std::vector<nn::NamedTensor> parameters;
  std::string group;  // name of their file in a checkpoint, without ".safetensors"
  train::StepFlops step_flops;
};

struct Sharing {
  settings::TrainSettings settings;  // with the strategy that `auto` has become
  sizing::MemoryPlan memory;
};

// Everything that decides over the run, before the ranks agree on it.
struct LanguageInput {
  LoadedModel& base;
  data::EncodedSplits splits;
  Questions questions;  // of evaluations with answers
  TrainedParameters trained;
  Sharing sharing;
  FoundCheckpoint checkpoint;
};

// Collective. `base`, of load_base(), outlives the result and gets its adapter. Throws DataError,
// ConfigError, CheckpointError.
LanguageInput find_language_input(TrainingRun& run, LoadedModel& base);

// The content that hosts must have in common. Hashes the weights where there are several hosts.
std::vector<SharedInput> shared_inputs(const TrainingRun& run, const LanguageInput& input);

struct SettledBatch {
  settings::TrainSettings settings;  // whose batch is a number
  data::BatchPlan plan;
  checkpoint::Stamp stamp;
  sizing::MemoryPlan memory;
  std::optional<BatchChoice> choice = {};  // none where the numbers were not measured
};

// True where settled_batch() has the least numbers, which measured_batch() replaces. A number that
// a checkpoint was trained with is not chosen anew.
bool must_measure(const TrainingRun& run, const LanguageInput& input);

// Computed from settings, rows and checkpoint alone. Throws ConfigError.
SettledBatch settled_batch(const TrainingRun& run, const LanguageInput& input);

// Collective. Measures steps that leave values and states of the optimizer as they are. Throws
// ConfigError where not even one row has room.
SettledBatch measured_batch(const TrainingRun& run, const LanguageInput& input,
                            const SettledBatch& least, PreparedState& prepared, comm::Group& group);

}  // namespace convoy::recipes
