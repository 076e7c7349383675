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

// The numbers of one problem of `mf`, doubles one after another: places of the first of each kind,
// in the order of DescentBatch. Measurements have entries by columns.
struct DescentPlaces {
  uint32_t weights = 0, gradients = 0, velocity = 0, outputs = 0, slopes = 0;
  uint32_t measurements = 0, targets = 0, residuals = 0;
  uint32_t numbers = 0;  // DescentNumbers
  uint32_t end = 0;
};

struct DescentNumbers {
  double negative_slope = 0, lr = 0, momentum = 0;
  double square_average = 0, correction = 1;  // so far
};

// Problems of one shape.
struct MfDescentLaunch {
  // The first problem's memory; the next one begins `places.end` further on.
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

inline constexpr uint32_t kDescentPowers = 16;  // kMaxSsmPower
inline constexpr uint32_t kDescentParts = 8;    // kBlockWeights: parts of sums over weights

// One problem of `ssm`. Values of weights that only fill the last parts are 0.
struct SsmDescentProblem {
  // Places of its first values, rows and epochs in the launch's memory.
  uint64_t values = 0;  // padded_weights; then as many of each of Adam's moments
  uint64_t rows = 0;
  uint64_t epochs = 0;
  double targets[kDescentPowers] = {};
  double divisor = 1;
  double mean_norm = 0;  // so far
  uint32_t num_weights = 0, padded_weights = 0;
  uint32_t num_powers = 0, num_rows = 0;
  uint32_t num_epochs = 0;
  uint32_t is_adam = 0, is_adaptive = 0;  // 0 or 1
  uint32_t unused = 0;
};

struct SsmDescentLaunch {
  SsmDescentProblem* problems = nullptr;
  double* values = nullptr;
  const double* rows = nullptr;  // kDescentPowers each
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
