// SPDX-License-Identifier: Apache-2.0
//
// The part of a block in which tokens read other tokens of their row: attention, or a recurrence.
// One thread. Shapes: T tokens of all rows, D hidden.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "convoy/model/nn/block_batch.h"
#include "convoy/model/nn/block_parameters.h"

namespace convoy::nn {

class TokenMixer {
 public:
  virtual ~TokenMixer() = default;

  // x_TD comes from the norm before the mixer. Returns [T, D]. Differentiable without a cache.
  virtual at::Tensor forward(const at::Tensor& x_TD, const BlockBatch& batch) const = 0;

  // The same as the functions of DecoderBlock.
  virtual void join_projections() = 0;
  virtual void quantize(const kernels::IntegerFormat& format) = 0;
  virtual bool trains() const = 0;
  virtual void visit(const LinearVisitor& linear, const ParameterVisitor& parameter) = 0;
};

std::unique_ptr<TokenMixer> make_token_mixer(const architecture::DecoderSpec& spec, int64_t index,
                                             const BlockSource& source);

}  // namespace convoy::nn
