// SPDX-License-Identifier: Apache-2.0
//
// The data that the host and the kernels of descent_kernels.cu exchange: plain structs of the same
// layout on both sides. Pointers are addresses on the GPU.
#pragma once

#include <stdint.h>

#include "convoy/farm/experiments/cuda/launch_parts.h"
#include "convoy/farm/experiments/mf/factor_layout.h"

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
  double* memory = nullptr;  // of the first problem; the next `places.end` further on
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

// Both compilers must agree on these sizes.
static_assert(sizeof(MfDescentLaunch) == 96 && sizeof(DescentLayer) == 16 &&
              sizeof(DescentNumbers) == 40);

}  // namespace convoy::experiments::cuda
