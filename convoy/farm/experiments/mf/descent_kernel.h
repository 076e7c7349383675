// SPDX-License-Identifier: Apache-2.0
//
// Gradient descent on eight problems of one shape, one per lane of a vector of doubles
// (descent_kernel.cpp). It is compiled for several instruction sets, and the loader chooses one. A
// problem's results have the same bits for every choice, and whatever problems are in the other
// lanes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "convoy/farm/experiments/mf/mf_parameters.h"

namespace convoy::experiments {

inline constexpr size_t kDescentLanes = 8;

struct alignas(64) LaneDoubles {
  double lane[kDescentLanes] = {};
};

// Orders in memory: weights of a layer [output unit][input], matrices between layers [unit][row],
// measurements [measurement][entry] with the entries by columns, like the last layer's output.
struct DescentBatch {
  size_t num_problems = kDescentLanes;  // further lanes repeat the first problem
  uint32_t n_rows = 0, n_cols = 0;
  MfActivation activation = MfActivation::Linear;
  LaneDoubles negative_slope;
  std::vector<uint32_t> units;  // number before the first layer, between layers, after the last

  std::vector<LaneDoubles> weights, gradients, velocity;  // all layers, one after another
  std::vector<LaneDoubles> outputs, slopes;               // values of all layers; d loss / d value
  std::vector<LaneDoubles> measurements, targets;

  LaneDoubles lr, momentum, square_average;
  double correction = 1;  // 0.99^t after step t
  bool uses_velocity = false;

  size_t first_weight(size_t layer) const;
  size_t first_output(size_t layer) const;
  size_t num_layers() const { return units.size() - 1; }
};

// Computes one epoch: forward pass, backward pass, update.
void descend_once(DescentBatch& batch);
// Computes the output of the last layer for the current weights, into `outputs`.
void evaluate(DescentBatch& batch);

}  // namespace convoy::experiments
