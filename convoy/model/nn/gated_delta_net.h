// SPDX-License-Identifier: Apache-2.0
//
// Gated DeltaNet (arXiv 2412.06464) of a block: linear maps, a short convolution of queries, keys
// and values, the gated delta rule, a norm with an output gate. A row of a generation keeps the
// last inputs of the convolution and the state of the rule in place of keys and values. Shapes: T
// tokens of all rows, D hidden, C channels of the convolution, W its taps, K key heads, E features
// of a key, H value heads, F features of a value.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "convoy/model/architecture/decoder_spec.h"
#include "convoy/model/nn/token_mixer.h"

namespace convoy::nn {

class GatedDeltaNet final : public TokenMixer {
 public:
  GatedDeltaNet(const architecture::DecoderSpec& spec, int64_t index, const BlockSource& source);

  at::Tensor forward(const at::Tensor& x_TD, const BlockBatch& batch) const override;
  void join_projections() override { inputs_.join(); }
  void quantize(const kernels::IntegerFormat& format) override;
  bool trains() const override;
  void visit(const LinearVisitor& linear, const ParameterVisitor& parameter) override;

 private:
  at::Tensor convolve(const at::Tensor& x_TC, const BlockBatch& batch) const;
  // The rule over the outputs of the convolution, [T, H, F].
  at::Tensor apply_rule(const at::Tensor& convolved_TC, const at::Tensor& a_TH,
                        const at::Tensor& b_TH, const BlockBatch& batch) const;

  int64_t index_;
  architecture::DeltaNetSpec sizes_;
  double norm_epsilon_;

  Projections inputs_;  // queries, keys and values together; the output gate; beta; the decay
  Linear output_;
  BlockParameter conv_C1W_;
  BlockParameter dt_bias_H_;
  BlockParameter a_log_H_;
  BlockParameter norm_F_;
};

}  // namespace convoy::nn
