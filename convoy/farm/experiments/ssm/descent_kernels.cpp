// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/ssm/descent_kernels.h"

#include <cmath>
#include <cstring>

namespace convoy::experiments {
namespace {

#include "convoy/farm/experiments/random/descent_lanes.inl"
#include "convoy/farm/experiments/ssm/descent_arithmetic.inl"

CONVOY_INLINE void load(Doubles& to, const double* from) { std::memcpy(&to, from, sizeof to); }
CONVOY_INLINE void store(double* to, const Doubles& from) { std::memcpy(to, &from, sizeof from); }

}  // namespace

DescentState::DescentState(const std::vector<double>& weights, uint32_t powers)
    : blocks((weights.size() + kBlockWeights - 1) / kBlockWeights), num_powers(powers) {
  for (size_t at = 0; at < weights.size(); ++at) {
    blocks[at / kBlockWeights].value[at % kBlockWeights] = weights[at];
    blocks[at / kBlockWeights].active[at % kBlockWeights] = 1;
  }
}

CONVOY_CLONES void sum_powers(const DescentState& state, double* sums) {
  Doubles parts[kMaxSsmPower] = {};
  const uint32_t num_powers = state.num_powers;
  for (const WeightBlock& block : state.blocks) {
    Doubles value;
    load(value, block.value);
    Doubles power = value;
    parts[0] += power;
    for (uint32_t at = 1; at < num_powers; ++at) parts[at] += power *= value;
  }
  for (uint32_t at = 0; at < num_powers; ++at) sums[at] = total_of_parts(parts[at]);
}

CONVOY_CLONES double gradient_norm(const DescentState& state, const DescentStep& step) {
  Doubles parts = {};
  for (const WeightBlock& block : state.blocks) {
    Doubles value, slope, active;
    load(value, block.value);
    load(active, block.active);
    gradient(slope, value, step.slope, state.num_powers);
    slope *= active;
    parts += slope * slope;
  }
  return std::sqrt(total_of_parts(parts));
}

CONVOY_CLONES void adam_step(DescentState& state, const DescentStep& step) {
  const uint32_t num_powers = state.num_powers;
  for (WeightBlock& block : state.blocks) {
    Doubles value, slope, active, first, second;
    load(value, block.value);
    load(active, block.active);
    load(first, block.first);
    load(second, block.second);
    gradient(slope, value, step.slope, num_powers);
    slope *= active;
    add_moments(first, second, slope);
    double roots[kBlockWeights];
    for (size_t at = 0; at < kBlockWeights; ++at) roots[at] = std::sqrt(second[at]);
    Doubles root;
    load(root, roots);
    adam_update(value, first, root, step.lr, step.root_correction);
    store(block.value, value);
    store(block.first, first);
    store(block.second, second);
  }
}

CONVOY_CLONES void sgd_step(DescentState& state, const DescentStep& step) {
  for (WeightBlock& block : state.blocks) {
    Doubles value, slope, active;
    load(value, block.value);
    load(active, block.active);
    gradient(slope, value, step.slope, state.num_powers);
    value -= step.lr * (slope * active);
    store(block.value, value);
  }
}

}  // namespace convoy::experiments
