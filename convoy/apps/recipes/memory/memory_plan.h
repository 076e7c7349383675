// SPDX-License-Identifier: Apache-2.0
//
// Gets the inputs of the formulas in sizing/ from a model that is loaded, or at least declared.
#pragma once

#include <cstdint>

#include "convoy/core/settings/train_settings.h"
#include "convoy/data/datasets/tokens/token_dataset.h"
#include "convoy/model/nn/causal_lm.h"
#include "convoy/model/nn/signal_classifier.h"
#include "convoy/model/sizing/memory_plan.h"
#include "convoy/train/comm/rank_environment.h"

namespace convoy::recipes {

// The sizes of the model's training, including its adapter. The parameters need no values.
// `adapter_dropout`: true when the adapter drops elements of its inputs.
sizing::TrainingShape training_shape(nn::CausalLm& model, bool adapter_dropout = false);

// Bytes of memory of the training process, without the values of this model and its replicas. 0
// when the model is not in the process's own memory.
int64_t memory_beside(nn::CausalLm& model, int replicas = 1);

// The memory of a training of task classify, before it starts; its windows are already in memory.
// `bf16`: type of its products.
sizing::MemoryPlan classifier_memory(const settings::TrainSettings& settings,
                                     const nn::SignalClassifier& model,
                                     const comm::RankEnvironment& environment, bool bf16);

// A lower bound for the tokens of the smallest batch of the training and of its evaluations.
int64_t least_batch_tokens(const settings::TrainSettings& settings, const data::TokenDataset& rows,
                           const data::TokenDataset& evaluated);

// The input of the memory estimate. train.gradient_checkpointing: auto counts as `selective` until
// it is settled.
sizing::MemoryQuestion memory_question(const settings::TrainSettings& settings, nn::CausalLm& model,
                                       const data::TokenDataset& rows,
                                       const data::TokenDataset& evaluated,
                                       const comm::RankEnvironment& environment);

}  // namespace convoy::recipes
