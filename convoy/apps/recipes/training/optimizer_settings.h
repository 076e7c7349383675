// SPDX-License-Identifier: Apache-2.0
//
// Makes a run's optimizer from its settings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/core/settings/train_settings.h"
#include "convoy/train/optim/adamw.h"

namespace convoy::recipes {

// `moments`: fp32, bf16, int8; `master_weights`: fp32, none.
optim::StateFormat state_format(const std::string& moments, const std::string& master_weights);
optim::StateFormat optimizer_states(const settings::TrainingSettings& train);

optim::AdamWConfig adamw_config(const settings::TrainingSettings& train, int64_t seed);

// LoRA+ (arXiv 2402.12354) with PEFT's parameter groups: B of an adapter, and every vector, gets
// `lr_ratio` times the learning rate. A ratio of 0 leaves the rates unchanged. `dims`: numbers of
// dimensions of the whole parameters, in their order.
void set_loraplus_rates(std::vector<optim::OptimizedParameter>& parameters,
                        const std::vector<int64_t>& dims, double lr_ratio);

}  // namespace convoy::recipes
