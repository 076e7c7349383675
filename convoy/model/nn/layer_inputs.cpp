// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/nn/layer_inputs.h"

#include <ATen/ATen.h>

#include <cmath>
#include <numbers>
#include <string>

#include "convoy/model/nn/spec_kernels.h"

namespace convoy::nn {
namespace {

constexpr const char* kEmbeddingName = "model.embed_tokens_per_layer.weight";
constexpr const char* kProjectionName = "model.per_layer_model_projection";
constexpr const char* kNormName = "model.per_layer_projection_norm.weight";

Linear make_projection(const architecture::DecoderSpec& spec, const ParameterSource& source) {
  const int64_t all_layers = spec.num_layers() * spec.layer_inputs.width;
  return {kProjectionName,
          source({std::string(kProjectionName) + ".weight", {all_layers, spec.hidden_size}}),
          at::Tensor()};
}

}  // namespace

// Members are built in the order of their declaration, which is the order of the checkpoint.
LayerInputs::LayerInputs(const architecture::DecoderSpec& spec, const ParameterSource& source)
    : num_layers_(spec.num_layers()),
      width_(spec.layer_inputs.width),
      hidden_size_(static_cast<double>(spec.hidden_size)),
      norm_epsilon_(spec.norm_epsilon),
      norm_order_(kernel_of(spec.norm_order)),
      embedding_{kEmbeddingName,
                 source({kEmbeddingName, {spec.layer_inputs.vocab_size, num_layers_ * width_}})},
      projection_(make_projection(spec, source)),
      norm_{kNormName, source({kNormName, {width_}})} {}

// Each of the two parts has a variance of about 1, so the root of two scales their sum.
at::Tensor LayerInputs::forward(const at::Tensor& token_ids_T, const at::Tensor& x_TD,
                                DrawKey draw_key) const {
  const at::Tensor of_tokens = at::embedding(embedding_.value, token_ids_T);
  // The factor is rounded to the weight dtype first, as the embedding's factor is.
  const at::Tensor scale =
      at::scalar_tensor(std::sqrt(static_cast<double>(width_)), of_tokens.scalar_type());
  const at::Tensor projected = projection_.forward(x_TD, draw_key) * (1 / std::sqrt(hidden_size_));
  const at::Tensor of_states =
      kernels::rms_norm(projected.view({-1, num_layers_, width_}).contiguous(), norm_.value,
                        norm_epsilon_, norm_order_);
  return (of_states + (of_tokens * scale).view({-1, num_layers_, width_})) *
         (1 / std::numbers::sqrt2);
}

void LayerInputs::visit(const LinearVisitor& linear, const ParameterVisitor& parameter) {
  visit_parameter(embedding_, parameter);
  linear(projection_);
  visit_parameter(norm_, parameter);
}

LayerInputGate::LayerInputGate(const architecture::DecoderSpec& spec, const BlockSource& source)
    : norm_epsilon_(spec.norm_epsilon),
      norm_order_(kernel_of(spec.norm_order)),
      activation_(kernel_of(spec.activation)),
      gate_(source.linear("per_layer_input_gate", spec.hidden_size, spec.layer_inputs.width,
                          /*bias=*/false)),
      projection_(source.linear("per_layer_projection", spec.layer_inputs.width, spec.hidden_size,
                                /*bias=*/false)),
      norm_(source.norm("post_per_layer_input_norm", spec.hidden_size)) {}

at::Tensor LayerInputGate::forward(const at::Tensor& x_TD, const at::Tensor& input_TP,
                                   DrawKey draw_key) const {
  const at::Tensor gated_TP =
      kernels::gated_activation(gate_.forward(x_TD, draw_key), input_TP, activation_);
  return kernels::rms_norm(projection_.forward(gated_TP, draw_key).contiguous(), norm_.value,
                           norm_epsilon_, norm_order_);
}

void LayerInputGate::quantize(const kernels::IntegerFormat& format) {
  gate_.quantize(format);
  projection_.quantize(format);
}

bool LayerInputGate::trains() const {
  return gate_.trains() || projection_.trains() || norm_.trains();
}

void LayerInputGate::visit(const LinearVisitor& linear, const ParameterVisitor& parameter) {
  linear(gate_);
  linear(projection_);
  visit_parameter(norm_, parameter);
}

}  // namespace convoy::nn
