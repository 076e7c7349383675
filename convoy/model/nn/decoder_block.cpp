// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/nn/decoder_block.h"

#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/attention/attention.h"

namespace convoy::nn {

// Members are built in the order of their declaration, which is the order of the checkpoint.
DecoderBlock::DecoderBlock(const architecture::DecoderSpec& spec, int64_t index,
                           const ParameterSource& source)
    : prefix_(fmt::format("model.layers.{}.", index)),
      index_(index),
      layer_(spec.layers[index]),
      head_dim_(spec.head_dim),
      norm_epsilon_(spec.norm_epsilon),
      attention_scale_(spec.attention_scale),
      residual_scale_(spec.residual_scale),
      norm_order_(kernel_of(spec.norm_order)),
      activation_(kernel_of(spec.activation)),
      query_(make_linear("self_attn.q_proj", spec.hidden_size, spec.num_heads * spec.head_dim,
                         spec.qkv_bias, source)),
      key_(make_linear("self_attn.k_proj", spec.hidden_size, spec.num_kv_heads * spec.head_dim,
                       spec.qkv_bias, source)),
      value_(make_linear("self_attn.v_proj", spec.hidden_size, spec.num_kv_heads * spec.head_dim,
                         spec.qkv_bias, source)),
      attention_output_(make_linear("self_attn.o_proj", spec.num_heads * spec.head_dim,
                                    spec.hidden_size, spec.attention_output_bias, source)),
      gate_(make_linear("mlp.gate_proj", spec.hidden_size, spec.ffn_size, spec.ffn_bias, source)),
      up_(make_linear("mlp.up_proj", spec.hidden_size, spec.ffn_size, spec.ffn_bias, source)),
      down_(make_linear("mlp.down_proj", spec.ffn_size, spec.hidden_size, spec.ffn_bias, source)) {
  if (spec.query_key_norm) {
    query_norm_ = make_norm("self_attn.q_norm", spec.head_dim, source);
    key_norm_ = make_norm("self_attn.k_norm", spec.head_dim, source);
  }
  before_attention_ = make_norm("input_layernorm", spec.hidden_size, source);
  // The name post_attention_layernorm means the norm before the feed-forward where there are two
  // norms, and the one after attention where there are four.
  if (spec.post_norms) {
    after_attention_ = make_norm("post_attention_layernorm", spec.hidden_size, source);
    before_ffn_ = make_norm("pre_feedforward_layernorm", spec.hidden_size, source);
    after_ffn_ = make_norm("post_feedforward_layernorm", spec.hidden_size, source);
  } else {
    before_ffn_ = make_norm("post_attention_layernorm", spec.hidden_size, source);
  }
}

Linear DecoderBlock::make_linear(const std::string& suffix, int64_t in, int64_t out, bool bias,
                                 const ParameterSource& source) const {
  const std::string name = prefix_ + suffix;
  at::Tensor weight = source({name + ".weight", {out, in}});
  return Linear(name, std::move(weight), bias ? source({name + ".bias", {out}}) : at::Tensor());
}

DecoderBlock::Norm DecoderBlock::make_norm(const std::string& suffix, int64_t size,
                                           const ParameterSource& source) const {
  const std::string name = prefix_ + suffix + ".weight";
  return {name, source({name, {size}})};
}

at::Tensor DecoderBlock::normalise(const at::Tensor& x, const Norm& norm) const {
  return kernels::rms_norm(x, norm.weight, norm_epsilon_, norm_order_);
}

Residual DecoderBlock::forward(const Residual& input, const BlockBatch& batch) const {
  const auto added = [this](const Residual& residual, const Norm& norm) {
    return kernels::add_rms_norm(residual.x_TD, residual.added_TD, norm.weight, norm_epsilon_,
                                 norm_order_);
  };
  const kernels::AddedNorm first = added(input, before_attention_);
  at::Tensor attended = attend(first.norm, batch);
  if (after_attention_.weight.defined()) attended = normalise(attended, after_attention_);
  const kernels::AddedNorm middle =
      added({first.sum, scaled(attended, residual_scale_)}, before_ffn_);
  at::Tensor fed = feed_forward(middle.norm, batch.draw_key);
  if (after_ffn_.weight.defined()) fed = normalise(fed, after_ffn_);
  return {middle.sum, scaled(fed, residual_scale_)};
}

at::Tensor DecoderBlock::attend(const at::Tensor& x_TD, const BlockBatch& batch) const {
  const int64_t tokens = x_TD.size(0);
  const std::vector<at::Tensor> projected =
      query_key_value_.forward({&query_, &key_, &value_}, x_TD, batch.draw_key);
  const auto in_heads = [&](const at::Tensor& x) { return x.view({tokens, -1, head_dim_}); };
  const at::Tensor q_THE = in_heads(projected[0]), k_TKE = in_heads(projected[1]),
                   v_TKE = in_heads(projected[2]);
  kernels::HeadTransform transform{.query_norm_E = query_norm_.weight,
                                   .key_norm_E = key_norm_.weight,
                                   .norm_epsilon = norm_epsilon_,
                                   .norm_order = norm_order_};
  if (layer_.rope != architecture::kNoRope) {
    transform.cos_PE = batch.cos_PE;
    transform.sin_PE = batch.sin_PE;
    transform.positions_T = batch.position_ids_T;
  }

  const kernels::AttentionConfig config{.scale = attention_scale_,
                                        .sliding_window = layer_.sliding_window,
                                        .kernel = batch.attention};
  const auto attend_in_rows = [&] {
    const auto [turned_q_THE, turned_k_TKE] = kernels::transformed_heads(q_THE, k_TKE, transform);
    return kernels::packed_attention(turned_q_THE, turned_k_TKE, v_TKE, batch.rows, config);
  };
  const at::Tensor out_THE =
      batch.cache ? batch.cache->attend(index_, q_THE, k_TKE, v_TKE, transform, config)
                  : attend_in_rows();
  return attention_output_.forward(out_THE.reshape({tokens, -1}), batch.draw_key);
}

at::Tensor DecoderBlock::feed_forward(const at::Tensor& x_TD, DrawKey draw_key) const {
  const std::vector<at::Tensor> inner = gate_up_.forward({&gate_, &up_}, x_TD, draw_key);
  return down_.forward(kernels::gated_activation(inner[0], inner[1], activation_), draw_key);
}

void DecoderBlock::join_projections() {
  query_key_value_.join({&query_, &key_, &value_});
  gate_up_.join({&gate_, &up_});
}

void DecoderBlock::quantize(const kernels::IntegerFormat& format) {
  query_key_value_.quantize({&query_, &key_, &value_}, format);
  attention_output_.quantize(format);
  gate_up_.quantize({&gate_, &up_}, format);
  down_.quantize(format);
}

bool DecoderBlock::trains() const {
  for (const Linear* linear : {&query_, &key_, &value_, &attention_output_, &gate_, &up_, &down_}) {
    if (linear->trains()) return true;
  }
  for (const Norm* norm : {&query_norm_, &key_norm_, &before_attention_, &after_attention_,
                           &before_ffn_, &after_ffn_}) {
    if (norm->weight.defined() && norm->weight.requires_grad()) return true;
  }
  return false;
}

void DecoderBlock::visit(
    const std::function<void(Linear&)>& linear,
    const std::function<void(const std::string& name, at::Tensor& weight)>& norm) {
  for (Linear* each : {&query_, &key_, &value_, &attention_output_}) linear(*each);
  for (Norm* each : {&query_norm_, &key_norm_}) {
    if (each->weight.defined()) norm(each->name, each->weight);
  }
  for (Linear* each : {&gate_, &up_, &down_}) linear(*each);
  for (Norm* each : {&before_attention_, &after_attention_, &before_ffn_, &after_ffn_}) {
    if (each->weight.defined()) norm(each->name, each->weight);
  }
}

}  // namespace convoy::nn
