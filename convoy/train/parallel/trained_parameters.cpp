// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/parallel/trained_parameters.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "convoy/core/base/error.h"

namespace convoy::parallel {
namespace {

// A checkpoint may name a parameter otherwise than the model does: adapters prefix the names.
void rename(std::vector<nn::Unit>& units, const std::vector<nn::NamedTensor>& parameters) {
  for (nn::Unit& unit : units) {
    for (nn::NamedTensor& trained : unit.trained) {
      const auto same = std::find_if(
          parameters.begin(), parameters.end(),
          [&](const nn::NamedTensor& parameter) { return parameter.value.is_same(trained.value); });
      CONVOY_INVARIANT(same != parameters.end(),
                       "{} trains, but is not among the parameters to train", trained.name);
      trained.name = same->name;
    }
  }
}

int64_t numel_of(const ParameterShard& shard) {
  return std::accumulate(shard.shape.begin(), shard.shape.end(), int64_t{1}, std::multiplies<>());
}

}  // namespace

std::vector<optim::OptimizedParameter> prepare_parameters(
    Strategy& strategy, nn::CausalLm& model, const std::vector<nn::NamedTensor>& parameters,
    const nn::DeferredValues* values) {
  std::vector<optim::OptimizedParameter> optimized =
      prepare_units(strategy, model.units(), parameters, values);
  model.set_residency(strategy.residency());
  return optimized;
}

std::vector<optim::OptimizedParameter> prepare_units(Strategy& strategy,
                                                     std::vector<nn::Unit> units,
                                                     const std::vector<nn::NamedTensor>& parameters,
                                                     const nn::DeferredValues* values) {
  rename(units, parameters);
  if (values != nullptr)
    strategy.prepare_deferred(std::move(units), *values);
  else
    strategy.prepare(std::move(units));
  std::vector<optim::OptimizedParameter> optimized;
  for (const ParameterShard& shard : strategy.shards())
    optimized.push_back({.name = shard.name,
                         .value = shard.value,
                         .gradient = shard.gradient,
                         .decays = optim::takes_weight_decay(shard.name),
                         .begin = shard.begin,
                         .whole_numel = numel_of(shard)});
  return optimized;
}

StateRange range_of(const optim::NamedState& state, const ParameterShard& shard) {
  if (state.elements_each == 1) return {shard.shape, shard.begin};
  return {{(numel_of(shard) + state.elements_each - 1) / state.elements_each},
          shard.begin / state.elements_each};
}

std::vector<nn::NamedTensor> trained_of(const std::vector<nn::Unit>& units) {
  std::vector<nn::NamedTensor> trained;
  for (const nn::Unit& unit : units)
    trained.insert(trained.end(), unit.trained.begin(), unit.trained.end());
  return trained;
}

ParameterShard whole_shard(const nn::NamedTensor& parameter, at::Tensor gradient) {
  return {.name = parameter.name,
          .shape = parameter.value.sizes().vec(),
          .begin = 0,
          .value = parameter.value,
          .gradient = std::move(gradient)};
}

}  // namespace convoy::parallel
