// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/nn/gated_delta_net.h"

#include "convoy/model/kernels/delta_gates/delta_gates.h"
#include "convoy/model/kernels/gated_activation/gated_activation.h"
#include "convoy/model/kernels/gated_delta_rule/gated_delta_rule.h"
#include "convoy/model/kernels/rms_norm/rms_norm.h"
#include "convoy/model/kernels/short_convolution/short_convolution.h"

namespace convoy::nn {
namespace {

std::vector<int64_t> input_widths(const architecture::DeltaNetSpec& sizes) {
  return {sizes.conv_channels(), sizes.value_width(), sizes.num_value_heads, sizes.num_value_heads};
}

}  // namespace

// Members are built in the order of their declaration, which is the order of the checkpoint.
GatedDeltaNet::GatedDeltaNet(const architecture::DecoderSpec& spec, int64_t index,
                             const BlockSource& source)
    : index_(index),
      sizes_(spec.delta_net),
      norm_epsilon_(spec.norm_epsilon),
      inputs_(source.projections(architecture::delta_net_maps(spec), spec.hidden_size, false,
                                 input_widths(sizes_))),
      output_(source.linear("linear_attn.out_proj", sizes_.value_width(), spec.hidden_size, false)),
      conv_C1W_(source.parameter("linear_attn.conv1d.weight",
                                 {sizes_.conv_channels(), 1, sizes_.conv_width})),
      dt_bias_H_(source.parameter("linear_attn.dt_bias", {sizes_.num_value_heads})),
      a_log_H_(source.parameter("linear_attn.A_log", {sizes_.num_value_heads})),
      norm_F_(source.norm("linear_attn.norm", sizes_.value_head_dim)) {}

at::Tensor GatedDeltaNet::forward(const at::Tensor& x_TD, const BlockBatch& batch) const {
  const int64_t tokens = x_TD.size(0);
  const std::vector<at::Tensor> projected = inputs_.forward(x_TD, batch.draw_key);
  const at::Tensor& gate_TD = projected[1];
  const at::Tensor out_THF =
      apply_rule(convolve(projected[0], batch), projected[3], projected[2], batch);
  const at::Tensor normed_TD =
      kernels::rms_norm(out_THF, norm_F_.value, norm_epsilon_, kernels::NormOrder::CastThenScale)
          .view({tokens, -1});
  return output_.forward(kernels::gated_activation(gate_TD, normed_TD, kernels::Activation::Silu),
                         batch.draw_key);
}

at::Tensor GatedDeltaNet::convolve(const at::Tensor& x_TC, const BlockBatch& batch) const {
  const at::Tensor weight_CW = conv_C1W_.value.view({sizes_.conv_channels(), sizes_.conv_width});
  if (batch.cache == nullptr) return kernels::short_convolution(x_TC, weight_CW, batch.rows);
  const RecurrentStates& states = batch.cache->states();
  return kernels::short_convolution_with_state(x_TC, weight_CW, batch.rows,
                                               states.conv_tails_SVC(index_), states.slots());
}

at::Tensor GatedDeltaNet::apply_rule(const at::Tensor& convolved_TC, const at::Tensor& a_TH,
                                     const at::Tensor& b_TH, const BlockBatch& batch) const {
  const int64_t tokens = convolved_TC.size(0);
  // Backward joins the gradients of a split in one copy. Gradients of slices are added to zeros,
  // each slice's to as many as the whole has.
  const std::vector<at::Tensor> parts = convolved_TC.split_with_sizes(
      {sizes_.key_width(), sizes_.key_width(), sizes_.value_width()}, 1);
  const at::Tensor q_TKE = parts[0].view({tokens, -1, sizes_.key_head_dim});
  const at::Tensor k_TKE = parts[1].view({tokens, -1, sizes_.key_head_dim});
  const at::Tensor v_THF = parts[2].view({tokens, -1, sizes_.value_head_dim});
  const kernels::DeltaGates gates =
      kernels::delta_gates(a_TH, b_TH, a_log_H_.value, dt_bias_H_.value);
  if (batch.cache == nullptr)
    return kernels::gated_delta_rule(q_TKE, k_TKE, v_THF, gates.log_decay_TH, gates.beta_TH,
                                     batch.rows);
  const RecurrentStates& states = batch.cache->states();
  return kernels::gated_delta_rule_with_state(q_TKE, k_TKE, v_THF, gates.log_decay_TH,
                                              gates.beta_TH, batch.rows,
                                              states.delta_states_SHEF(index_), states.slots());
}

void GatedDeltaNet::quantize(const kernels::IntegerFormat& format) {
  inputs_.quantize(format);
  output_.quantize(format);
}

bool GatedDeltaNet::trains() const {
  return inputs_.trains() || output_.trains() || conv_C1W_.trains() || dt_bias_H_.trains() ||
         a_log_H_.trains() || norm_F_.trains();
}

void GatedDeltaNet::visit(const LinearVisitor& linear, const ParameterVisitor& parameter) {
  inputs_.visit(linear);
  linear(output_);
  for (BlockParameter* each : {&conv_C1W_, &dt_bias_H_, &a_log_H_, &norm_F_})
    visit_parameter(*each, parameter);
}

}  // namespace convoy::nn
