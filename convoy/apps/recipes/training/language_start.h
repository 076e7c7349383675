// SPDX-License-Identifier: Apache-2.0
//
// The start of a language model's training: a rank loads model and rows, chooses the trained
// parameters, the strategy and the checkpoint to resume, and settles the batch.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "convoy/apps/recipes/evaluate/questions.h"
#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/apps/recipes/memory/auto_batch.h"
#include "convoy/apps/recipes/posttraining/rollout_problems.h"
#include "convoy/apps/recipes/training/joined_training.h"
#include "convoy/data/datasets/batches/batch_plan.h"
#include "convoy/data/datasets/encoding/encode_splits.h"
#include "convoy/model/sizing/memory_plan.h"
#include "convoy/train/loop/step_batches.h"

namespace convoy::recipes {

// If the model is an adapter's folder, replaces it by the base and continues to train the adapter.
// The training uses the adapter's own chat template, unless the settings name one. Throws
// ConfigError.
settings::TrainSettings with_adapter_start(settings::TrainSettings settings, const Log& log);

// Loads without values when ranks may share them. Throws DataError, ConfigError.
LoadedModel load_base(const TrainingRun& run);

struct TrainedParameters {
  std::vector<nn::NamedTensor> parameters;
  std::string group;  // name of the parameters' file in a checkpoint, without ".safetensors"
  train::StepFlops step_flops;
};

struct Sharing {
  settings::TrainSettings settings;  // with the chosen strategy in place of `auto`
  sizing::MemoryPlan memory;
};

// All inputs that determine the run, before the ranks agree on it.
struct LanguageInput {
  LoadedModel& base;
  data::EncodedSplits splits;
  Questions questions;       // for evaluations with answers
  RolloutProblems problems;  // for a task that makes its rows while it trains; else empty
  TrainedParameters trained;
  Sharing sharing;
  FoundCheckpoint checkpoint;
};

// Collective. `base`, from load_base(), must outlive the result and gets its adapter. Throws
// DataError, ConfigError, CheckpointError.
LanguageInput find_language_input(TrainingRun& run, LoadedModel& base, FoundCheckpoint checkpoint);

// The content that hosts must have in common. Hashes the weights when there are several hosts.
std::vector<SharedInput> shared_inputs(const TrainingRun& run, const LanguageInput& input);

struct SettledBatch {
  settings::TrainSettings settings;  // with a number in place of an automatic batch size
  data::BatchPlan plan;
  checkpoint::Stamp stamp;
  sizing::MemoryPlan memory;
  std::optional<BatchChoice> choice = {};  // empty when the numbers were not measured
};

// True when settled_batch() holds only minimum values, which measured_batch() replaces. Values of a
// checkpoint are kept.
bool must_measure(const TrainingRun& run, const LanguageInput& input);

// Computed from settings, rows and checkpoint alone. Throws ConfigError.
SettledBatch settled_batch(const TrainingRun& run, const LanguageInput& input);

// Collective. Measures steps that leave values and optimizer states unchanged. Returns nothing when
// the run was stopped meanwhile; `prepared` cannot be used any more then. Throws ConfigError when
// not even one row fits.
std::optional<SettledBatch> measured_batch(const TrainingRun& run, const LanguageInput& input,
                                           const SettledBatch& least, PreparedState& prepared,
                                           comm::Group& group);

}  // namespace convoy::recipes
