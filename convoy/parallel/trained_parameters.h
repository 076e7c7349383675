// SPDX-License-Identifier: Apache-2.0
//
// From a model's parameters to an optimizer's, by way of the strategy that sums their gradients.
#pragma once

#include <vector>

#include "convoy/nn/causal_lm.h"
#include "convoy/optim/adamw.h"
#include "convoy/parallel/strategy.h"

namespace convoy::parallel {

// Collective: strategy.prepare() of `parameters`. Returns each with the strategy's gradient, in the
// same order; biases and norms do not decay (optim::takes_weight_decay). Throws as prepare().
std::vector<optim::OptimizedParameter> prepare_parameters(
    Strategy& strategy, const std::vector<nn::NamedTensor>& parameters);

}  // namespace convoy::parallel
