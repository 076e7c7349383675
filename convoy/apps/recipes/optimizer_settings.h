// SPDX-License-Identifier: Apache-2.0
//
// From the settings of a run to its optimizer.
#pragma once

#include <cstdint>
#include <vector>

#include "convoy/core/settings/train_settings.h"
#include "convoy/train/optim/adamw.h"

namespace convoy::recipes {

optim::StateFormat optimizer_states(const settings::TrainingSettings& train);

optim::AdamWConfig adamw_config(const settings::TrainingSettings& train, int64_t seed);

// LoRA+ (arXiv 2402.12354) as PEFT groups parameters: B of an adapter, and whatever is a vector,
// takes `lr_ratio` times the learning rate. A ratio of 0 leaves them as they are. `dims`: of the
// whole parameters, in their order.
void set_loraplus_rates(std::vector<optim::OptimizedParameter>& parameters,
                        const std::vector<int64_t>& dims, double lr_ratio);

}  // namespace convoy::recipes
