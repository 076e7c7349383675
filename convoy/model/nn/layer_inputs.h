// SPDX-License-Identifier: Apache-2.0
//
// Inputs of blocks beside the hidden states (Gemma 4's embeddings for each layer): LayerInputs
// makes them from the tokens, a LayerInputGate adds one to its block's hidden states. One thread.
// Shapes: T tokens, D hidden, L layers, P features of an input, V vocabulary.
#pragma once

#include <ATen/core/Tensor.h>

#include "convoy/model/architecture/decoder_spec.h"
#include "convoy/model/kernels/gated_activation/gated_activation.h"
#include "convoy/model/kernels/rms_norm/rms_norm.h"
#include "convoy/model/nn/block_parameters.h"

namespace convoy::nn {

class LayerInputs {
 public:
  // Only for a spec whose layer_inputs.are_there().
  LayerInputs(const architecture::DecoderSpec& spec, const ParameterSource& source);

  // x_TD: the tokens' scaled embeddings. Returns [T, L, P]. Differentiable.
  at::Tensor forward(const at::Tensor& token_ids_T, const at::Tensor& x_TD, DrawKey draw_key) const;

  void quantize(const kernels::IntegerFormat& format) { projection_.quantize(format); }
  Linear& projection() { return projection_; }
  // In checkpoint order.
  void visit(const LinearVisitor& linear, const ParameterVisitor& parameter);

 private:
  int64_t num_layers_;
  int64_t width_;
  double hidden_size_;
  double norm_epsilon_;
  kernels::NormOrder norm_order_;

  BlockParameter embedding_;  // [V, L * P]
  Linear projection_;
  BlockParameter norm_;
};

class LayerInputGate {
 public:
  LayerInputGate(const architecture::DecoderSpec& spec, const BlockSource& source);

  // Returns the term that the block adds to its hidden states x_TD for input_TP. Differentiable.
  at::Tensor forward(const at::Tensor& x_TD, const at::Tensor& input_TP, DrawKey draw_key) const;

  void quantize(const kernels::IntegerFormat& format);
  bool trains() const;
  void visit(const LinearVisitor& linear, const ParameterVisitor& parameter);

 private:
  double norm_epsilon_;
  kernels::NormOrder norm_order_;
  kernels::Activation activation_;

  Linear gate_;
  Linear projection_;
  BlockParameter norm_;
};

}  // namespace convoy::nn
