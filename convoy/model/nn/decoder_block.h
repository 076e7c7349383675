// SPDX-License-Identifier: Apache-2.0
//
// One transformer block: a token mixer and a gated feed-forward, each behind a norm and added to
// the residual; in some families an input of the layer, and a scalar that multiplies the output.
// Shapes: T tokens, D hidden, F feed-forward.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "convoy/model/architecture/decoder_spec.h"
#include "convoy/model/nn/block_batch.h"
#include "convoy/model/nn/block_parameters.h"
#include "convoy/model/nn/layer_inputs.h"
#include "convoy/model/nn/spec_kernels.h"
#include "convoy/model/nn/token_mixer.h"

namespace convoy::nn {

// `x` times a factor of config.json; a factor of 1 costs nothing.
inline at::Tensor scaled(const at::Tensor& x, double factor) {
  return factor == 1.0 ? x : x * factor;
}

// Hidden states between blocks: a block's last sum is left to the norm that follows it.
struct Residual {
  at::Tensor x_TD;
  at::Tensor added_TD = {};  // undefined: nothing

  bool requires_grad() const {
    return x_TD.requires_grad() || (added_TD.defined() && added_TD.requires_grad());
  }
  at::Tensor sum() const { return added_TD.defined() ? x_TD + added_TD : x_TD; }
};

class DecoderBlock {
 public:
  DecoderBlock(const architecture::DecoderSpec& spec, int64_t index, const ParameterSource& source);

  Residual forward(const Residual& input, const BlockBatch& batch) const;

  // Makes one product of the maps at the input of the token mixer, and one of gate and up.
  void join_projections();

  // Quantises every linear map; maps that are joined are quantised as one.
  void quantize(const kernels::IntegerFormat& format);

  bool trains() const;                    // a parameter or an adapter in it requires grad
  int64_t rope() const { return rope_; }  // or architecture::kNoRope
  // Visits the linear maps and the other parameters of the block, in checkpoint order.
  void visit(const LinearVisitor& linear, const ParameterVisitor& parameter);

 private:
  DecoderBlock(const architecture::DecoderSpec& spec, int64_t index, const BlockSource& source);

  at::Tensor normalise_output(const at::Tensor& x, const BlockParameter& norm) const;
  kernels::AddedNorm added(const Residual& residual, const BlockParameter& norm) const;
  at::Tensor feed_forward(const at::Tensor& x_TD, DrawKey draw_key) const;
  Residual finished(const Residual& output, const BlockBatch& batch) const;

  int64_t rope_;
  double norm_epsilon_;
  double after_norm_epsilon_;
  double residual_scale_;
  kernels::NormOrder norm_order_;
  kernels::Activation activation_;

  std::unique_ptr<TokenMixer> mixer_;
  Projections gate_up_;
  Linear down_;
  BlockParameter before_mixer_;
  BlockParameter after_mixer_;
  BlockParameter before_ffn_;
  BlockParameter after_ffn_;
  std::optional<LayerInputGate> input_gate_;
  BlockParameter scalar_;
};

}  // namespace convoy::nn
