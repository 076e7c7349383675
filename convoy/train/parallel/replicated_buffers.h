// SPDX-License-Identifier: Apache-2.0
//
// Buffers of a model that every rank holds whole. Each rank's training forward changes its own
// buffers; the values of rank 0 are kept. PyTorch's DDP broadcasts them before the first forward of
// a step. Here they are broadcast at the end of the step, so that an evaluation or a checkpoint
// between two steps sees the same values on every rank. Forward passes see the same values either
// way.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "convoy/model/nn/unit.h"
#include "convoy/train/comm/group.h"

namespace convoy::parallel {

class ReplicatedBuffers {
 public:
  explicit ReplicatedBuffers(comm::Group& group) : group_(group) {}

  // Collective. Takes over the buffers of the units; their values become rank 0's. Throws
  // ConfigError naming the first buffer whose name, shape or dtype differs from rank 0's.
  void add(const std::vector<nn::Unit>& units);
  // Collective where there are buffers. One broadcast for each dtype.
  void take_those_of_rank_zero();

 private:
  struct Flat {  // buffers of one dtype, copied together
    std::vector<at::Tensor> buffers;
    at::Tensor together;
  };
  comm::Group& group_;
  std::vector<Flat> flats_;
};

}  // namespace convoy::parallel
