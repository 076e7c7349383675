// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/nn/decoder_block.h"

#include <algorithm>

#include "convoy/model/kernels/ops/autograd.h"

namespace convoy::nn {
namespace {

// A recurrence depends on the order of tokens by itself, so it needs no rotation.
int64_t rope_of(const architecture::LayerSpec& layer) {
  return layer.mixer == architecture::TokenMixer::Attention ? layer.rope : architecture::kNoRope;
}

std::optional<LayerInputGate> make_input_gate(const architecture::DecoderSpec& spec,
                                              const BlockSource& source) {
  if (!spec.layer_inputs.are_there()) return std::nullopt;
  return std::make_optional<LayerInputGate>(spec, source);
}

// The scalar never trains, in transformers it is a buffer. Its gradient is zero, not undefined:
// strategies wait for a gradient of every parameter.
at::Tensor times_scalar(const at::Tensor& x_TD, const at::Tensor& scalar) {
  const bool records = kernels::records_gradient({x_TD, scalar});
  const at::NoGradGuard no_grad;
  const at::Tensor y_TD = x_TD * scalar;
  if (!records) return y_TD;
  return kernels::with_backward(
      y_TD, {.op = "layer_scalar",
             .inputs = {x_TD, scalar},
             .saved = {scalar},
             .gradients = [](const at::Tensor& grad, const std::vector<at::Tensor>& saved,
                             const std::vector<bool>&) -> std::vector<at::Tensor> {
               return {grad * saved[0], at::zeros_like(saved[0])};
             }});
}

}  // namespace

DecoderBlock::DecoderBlock(const architecture::DecoderSpec& spec, int64_t index,
                           const ParameterSource& source)
    : DecoderBlock(spec, index, BlockSource(source, index)) {}

// Members are built in the order of their declaration, which is the order of the checkpoint.
DecoderBlock::DecoderBlock(const architecture::DecoderSpec& spec, int64_t index,
                           const BlockSource& source)
    : rope_(rope_of(spec.layers[index])),
      norm_epsilon_(spec.norm_epsilon),
      after_norm_epsilon_(spec.after_norm_epsilon.value_or(spec.norm_epsilon)),
      residual_scale_(spec.residual_scale),
      norm_order_(kernel_of(spec.norm_order)),
      activation_(kernel_of(spec.activation)),
      mixer_(make_token_mixer(spec, index, source)),
      gate_up_(source.projections(
          architecture::gate_up_maps(spec, spec.layers[index]), spec.hidden_size, spec.ffn_bias,
          {spec.ffn_size_of(spec.layers[index]), spec.ffn_size_of(spec.layers[index])})),
      down_(source.linear("mlp.down_proj", spec.ffn_size_of(spec.layers[index]), spec.hidden_size,
                          spec.ffn_bias)),
      before_mixer_(source.norm(spec.norms.before_attention, spec.hidden_size)),
      after_mixer_(source.norm(spec.norms.after_attention, spec.hidden_size)),
      before_ffn_(source.norm(spec.norms.before_ffn, spec.hidden_size)),
      after_ffn_(source.norm(spec.norms.after_ffn, spec.hidden_size)),
      input_gate_(make_input_gate(spec, source)),
      scalar_(spec.layer_scalars ? source.parameter("layer_scalar", {1}) : BlockParameter()) {}

// Returns x itself if there is no norm.
at::Tensor DecoderBlock::normalise_output(const at::Tensor& x, const BlockParameter& norm) const {
  if (!norm.value.defined()) return x;
  return kernels::rms_norm(x.contiguous(), norm.value, after_norm_epsilon_, norm_order_);
}

// The sum of a residual, and the input of the maps that follow: the norm of the sum, or the sum.
kernels::AddedNorm DecoderBlock::added(const Residual& residual, const BlockParameter& norm) const {
  if (norm.value.defined())
    return kernels::add_rms_norm(residual.x_TD, residual.added_TD, norm.value, norm_epsilon_,
                                 norm_order_);
  const at::Tensor sum_TD = residual.sum();
  return {sum_TD, sum_TD};
}

Residual DecoderBlock::forward(const Residual& input, const BlockBatch& batch) const {
  const kernels::AddedNorm first = added(input, before_mixer_);
  const at::Tensor mixed = normalise_output(mixer_->forward(first.norm, batch), after_mixer_);
  const kernels::AddedNorm middle = added({first.sum, scaled(mixed, residual_scale_)}, before_ffn_);
  const at::Tensor fed = normalise_output(feed_forward(middle.norm, batch.draw_key), after_ffn_);
  return finished({middle.sum, scaled(fed, residual_scale_)}, batch);
}

Residual DecoderBlock::finished(const Residual& output, const BlockBatch& batch) const {
  if (!input_gate_ && !scalar_.value.defined()) return output;
  at::Tensor x_TD = output.sum();
  if (input_gate_) x_TD = x_TD + input_gate_->forward(x_TD, batch.layer_input_TP, batch.draw_key);
  return {scalar_.value.defined() ? times_scalar(x_TD, scalar_.value) : x_TD};
}

at::Tensor DecoderBlock::feed_forward(const at::Tensor& x_TD, DrawKey draw_key) const {
  const std::vector<at::Tensor> inner = gate_up_.forward(x_TD, draw_key);
  return down_.forward(kernels::gated_activation(inner[0], inner[1], activation_), draw_key);
}

void DecoderBlock::join_projections() {
  mixer_->join_projections();
  gate_up_.join();
}

void DecoderBlock::quantize(const kernels::IntegerFormat& format) {
  mixer_->quantize(format);
  gate_up_.quantize(format);
  down_.quantize(format);
  if (input_gate_) input_gate_->quantize(format);
}

bool DecoderBlock::trains() const {
  const auto others = {&before_mixer_, &after_mixer_, &before_ffn_, &after_ffn_, &scalar_};
  return mixer_->trains() || gate_up_.trains() || down_.trains() ||
         (input_gate_ && input_gate_->trains()) ||
         std::any_of(others.begin(), others.end(),
                     [](const BlockParameter* other) { return other->trains(); });
}

void DecoderBlock::visit(const LinearVisitor& linear, const ParameterVisitor& parameter) {
  mixer_->visit(linear, parameter);
  gate_up_.visit(linear);
  linear(down_);
  for (BlockParameter* norm : {&before_mixer_, &after_mixer_, &before_ffn_, &after_ffn_})
    visit_parameter(*norm, parameter);
  if (input_gate_) input_gate_->visit(linear, parameter);
  visit_parameter(scalar_, parameter);
}

}  // namespace convoy::nn
