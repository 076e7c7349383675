// SPDX-License-Identifier: Apache-2.0
//
// From a model that is loaded, or at least declared, to what the formulas of sizing/ ask.
#pragma once

#include <cstdint>

#include "convoy/core/settings/train_settings.h"
#include "convoy/data/datasets/token_dataset.h"
#include "convoy/model/nn/causal_lm.h"
#include "convoy/model/nn/signal_classifier.h"
#include "convoy/model/sizing/memory_plan.h"
#include "convoy/train/comm/environment.h"

namespace convoy::recipes {

// With its adapter; needs no values. `adapter_dropout`: whether the adapter drops elements of its
// inputs.
sizing::TrainingShape training_shape(nn::CausalLm& model, bool adapter_dropout = false);

// What the process holds by now but for the values of this model and its replicas; 0 where it does
// not compute in its own memory.
int64_t memory_beside(nn::CausalLm& model, int replicas = 1);

// Of a training of task classify, before it; its windows are in memory by now. `bf16`: its
// products.
sizing::MemoryPlan classifier_memory(const settings::TrainSettings& settings,
                                     const nn::SignalClassifier& model,
                                     const comm::RankEnvironment& environment, bool bf16);

sizing::MemoryQuestion memory_question(const settings::TrainSettings& settings, nn::CausalLm& model,
                                       const data::TokenDataset& rows,
                                       const comm::RankEnvironment& environment);

}  // namespace convoy::recipes
