// SPDX-License-Identifier: Apache-2.0
//
// Gives a model's units to the strategy, which sums their gradients, and makes the list of
// parameters that the optimizer updates.
#pragma once

#include <vector>

#include "convoy/model/nn/causal_lm.h"
#include "convoy/train/optim/adamw.h"
#include "convoy/train/parallel/strategy.h"

namespace convoy::parallel {

// Collective. Calls strategy.prepare() with the model's units; trained parameters keep their names
// in `parameters`. From then on the model notifies the strategy of the units that it uses. Returns
// the parameters that this rank optimizes, in the order of strategy.shards(). Biases and norms do
// not decay (optim::takes_weight_decay). `values`: the values of a model that was loaded without
// values, else null. Throws what prepare() throws.
std::vector<optim::OptimizedParameter> prepare_parameters(
    Strategy& strategy, nn::CausalLm& model, const std::vector<nn::NamedTensor>& parameters,
    const nn::DeferredValues* values = nullptr);

// prepare_parameters() for other models. The code that uses the units must notify
// strategy.residency().
std::vector<optim::OptimizedParameter> prepare_units(Strategy& strategy,
                                                     std::vector<nn::Unit> units,
                                                     const std::vector<nn::NamedTensor>& parameters,
                                                     const nn::DeferredValues* values = nullptr);

// The position of this rank's part of a state tensor of the optimizer. `shape`: the shape of the
// whole tensor, which all ranks hold together. `begin`: the flattened index at which the part
// begins.
struct StateRange {
  std::vector<int64_t> shape;
  int64_t begin = 0;
};
StateRange range_of(const optim::NamedState& state, const ParameterShard& shard);

// The trained parameters of all units, in their order.
std::vector<nn::NamedTensor> trained_of(const std::vector<nn::Unit>& units);

ParameterShard whole_shard(const nn::NamedTensor& parameter, at::Tensor gradient);

}  // namespace convoy::parallel
