// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/training/optimizer_settings.h"

namespace convoy::recipes {

optim::StateFormat state_format(const std::string& moments, const std::string& master_weights) {
  optim::StateFormat states;
  if (moments == "bf16") states.moments = optim::MomentType::Bf16;
  if (moments == "int8") states.moments = optim::MomentType::Int8;
  states.has_masters = master_weights == "fp32";
  return states;
}

optim::StateFormat optimizer_states(const settings::TrainingSettings& train) {
  optim::StateFormat states = state_format(train.moment_type(), train.optimizer.master_weights);
  states.is_paged = train.optim.starts_with("paged_");
  return states;
}

optim::AdamWConfig adamw_config(const settings::TrainingSettings& train, int64_t seed) {
  return {.beta1 = train.optimizer.adam_beta1,
          .beta2 = train.optimizer.adam_beta2,
          .epsilon = train.optimizer.adam_epsilon,
          .weight_decay = train.weight_decay,
          .states = optimizer_states(train),
          .seed = static_cast<uint64_t>(seed)};
}

void set_loraplus_rates(std::vector<optim::OptimizedParameter>& parameters,
                        const std::vector<int64_t>& dims, double lr_ratio) {
  if (lr_ratio == 0) return;
  for (size_t index = 0; index < parameters.size(); ++index)
    if (parameters[index].name.find("lora_B") != std::string::npos || dims[index] == 1)
      parameters[index].lr_factor = lr_ratio;
}

}  // namespace convoy::recipes
