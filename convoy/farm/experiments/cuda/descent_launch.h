// SPDX-License-Identifier: Apache-2.0
//
// The data that the host and the kernels of descent_kernels.cu exchange: plain structs of the same
// layout on both sides. Pointers are addresses on the GPU.
#pragma once

#include <stdint.h>

#include "convoy/farm/experiments/cuda/launch_parts.h"
#include "convoy/farm/experiments/mf/factor_layout.h"
#include "convoy/farm/experiments/ssm/descent_step.h"

namespace convoy::experiments::cuda {

struct DescentLayer {
  uint32_t inputs = 0, outputs = 0;
  uint32_t first_weight = 0, first_output = 0;
};

// Offsets into the memory of one problem of `mf`, an array of doubles. Each member is the offset of
// the first number of that kind. Each kind is stored in the order of DescentBatch; the entries of a
// measurement are in column order.
struct DescentPlaces {
  uint32_t weights = 0, gradients = 0, velocity = 0, outputs = 0, slopes = 0;
  uint32_t measurements = 0, targets = 0, residuals = 0;
  uint32_t numbers = 0;  // offset of the DescentNumbers
  uint32_t end = 0;
};

struct DescentNumbers {
  double negative_slope = 0, lr = 0, momentum = 0;
  double square_average = 0, correction = 1;  // values after the steps so far
};

// A launch for problems of one shape.
struct MfDescentLaunch {
  // Memory of the first problem. The memory of each next problem begins `places.end` doubles later.
  double* memory = nullptr;
  uint32_t num_problems = 0;
  uint32_t num_steps = 0;
  const DescentLayer* layers = nullptr;
  uint32_t num_layers = 0;
  uint32_t n_rows = 0, num_entries = 0;
  uint32_t num_weights = 0, num_measurements = 0;
  uint32_t uses_velocity = 0;
  MfActivation activation = MfActivation::Linear;
  DescentPlaces places;
};

inline constexpr uint32_t kDescentPowers = 16;  // equal to kMaxSsmPower
// Equal to kBlockWeights: number of partial sums over the weights.
inline constexpr uint32_t kDescentParts = 8;

// One problem of `ssm`. Its weights are padded to whole blocks, and the values of the padding are
// 0.
struct SsmDescentProblem {
  // Offsets of the problem's first value, first row and first epoch in the arrays of the launch.
  // From `values` on there are `padded_weights` weights, then as many numbers for each of Adam's
  // two moments.
  uint64_t values = 0;
  uint64_t rows = 0;
  uint64_t epochs = 0;
  double targets[kDescentPowers] = {};
  double divisor = 1;
  double mean_norm = 0;  // value after the steps so far
  uint32_t num_weights = 0, padded_weights = 0;
  uint32_t num_powers = 0, num_rows = 0;
  uint32_t num_epochs = 0;
  uint32_t is_adam = 0, is_adaptive = 0;  // 0 or 1
  uint32_t unused = 0;
};

struct SsmDescentLaunch {
  SsmDescentProblem* problems = nullptr;
  double* values = nullptr;
  const double* rows = nullptr;  // kDescentPowers numbers per row
  const SsmEpoch* epochs = nullptr;
  uint32_t num_problems = 0;
  uint32_t first_step = 0, num_steps = 0;
  uint32_t unused = 0;
};

// Both compilers must agree on these sizes.
static_assert(sizeof(SsmDescentProblem) == 200 && sizeof(SsmDescentLaunch) == 48 &&
              sizeof(SsmEpoch) == 32 && sizeof(MfDescentLaunch) == 96 &&
              sizeof(DescentLayer) == 16 && sizeof(DescentNumbers) == 40);

}  // namespace convoy::experiments::cuda
