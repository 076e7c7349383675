// SPDX-License-Identifier: Apache-2.0
//
// One update of all weights of one problem: loops over blocks of eight weights, compiled for
// several instruction sets, of which the loader chooses one. Every choice gives the same bits,
// because a sum is made of eight partial sums, added in one order, without fma.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "convoy/farm/experiments/ssm/descent_step.h"
#include "convoy/farm/experiments/ssm/ssm_parameters.h"

namespace convoy::experiments {

inline constexpr size_t kBlockWeights = 8;

struct alignas(64) WeightBlock {
  double value[kBlockWeights] = {};
  double first[kBlockWeights] = {};  // Adam's moments
  double second[kBlockWeights] = {};
  double active[kBlockWeights] = {};  // 1 for weights; 0 for padding, which stays 0
};

struct DescentState {
  DescentState(const std::vector<double>& weights, uint32_t powers);

  std::vector<WeightBlock> blocks;
  uint32_t num_powers = 0;
};

struct DescentStep {
  double slope[kMaxSsmPower] = {};  // factors in d loss / d a = sum of slope[m - 1] a^(m - 1)
  double lr = 0;
  double root_correction = 1;
};

// Computes sums[m - 1] = sum over weights of a^m.
void sum_powers(const DescentState& state, double* sums);
double gradient_norm(const DescentState& state, const DescentStep& step);
// Updates a -= lr * first / (sqrt(second) / root_correction + epsilon).
void adam_step(DescentState& state, const DescentStep& step);
void sgd_step(DescentState& state, const DescentStep& step);

}  // namespace convoy::experiments
