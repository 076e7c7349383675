// SPDX-License-Identifier: Apache-2.0
#include "convoy/parallel/trained_parameters.h"

namespace convoy::parallel {

std::vector<optim::OptimizedParameter> prepare_parameters(
    Strategy& strategy, const std::vector<nn::NamedTensor>& parameters) {
  std::vector<TrainableParameter> trainable;
  for (const nn::NamedTensor& parameter : parameters)
    trainable.push_back({parameter.name, parameter.value});
  strategy.prepare(std::move(trainable));
  std::vector<optim::OptimizedParameter> optimized;
  for (size_t index = 0; index < parameters.size(); ++index)
    optimized.push_back({.name = parameters[index].name,
                         .value = parameters[index].value,
                         .gradient = strategy.gradients()[index],
                         .decays = optim::takes_weight_decay(parameters[index].name)});
  return optimized;
}

}  // namespace convoy::parallel
