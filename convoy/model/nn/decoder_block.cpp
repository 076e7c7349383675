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
      norm_over_heads_(spec.norm_over_heads),
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
    const int64_t heads_together = spec.norm_over_heads ? spec.num_heads : 1;
    const int64_t kv_heads_together = spec.norm_over_heads ? spec.num_kv_heads : 1;
    query_norm_ = make_norm("self_attn.q_norm", heads_together * spec.head_dim, source);
    key_norm_ = make_norm("self_attn.k_norm", kv_heads_together * spec.head_dim, source);
  }
  before_attention_ = make_norm(spec.norms.before_attention, spec.hidden_size, source);
  after_attention_ = make_norm(spec.norms.after_attention, spec.hidden_size, source);
  before_ffn_ = make_norm(spec.norms.before_ffn, spec.hidden_size, source);
  after_ffn_ = make_norm(spec.norms.after_ffn, spec.hidden_size, source);
}

Linear DecoderBlock::make_linear(const std::string& suffix, int64_t in, int64_t out, bool bias,
                                 const ParameterSource& source) const {
  const std::string name = prefix_ + suffix;
  at::Tensor weight = source({name + ".weight", {out, in}});
  return Linear(name, std::move(weight), bias ? source({name + ".bias", {out}}) : at::Tensor());
}

DecoderBlock::Norm DecoderBlock::make_norm(const std::string& suffix, int64_t size,
                                           const ParameterSource& source) const {
  if (suffix.empty()) return {};
  const std::string name = prefix_ + suffix + ".weight";
  return {name, source({name, {size}})};
}

at::Tensor DecoderBlock::normalise(const at::Tensor& x, const Norm& norm) const {
  if (!norm.weight.defined()) return x;
  // A part of a joined product lies in strides.
  return kernels::rms_norm(x.contiguous(), norm.weight, norm_epsilon_, norm_order_);
}

// The sum of a residual, and what the maps behind it read: its norm, or itself.
kernels::AddedNorm DecoderBlock::added(const Residual& residual, const Norm& norm) const {
  if (norm.weight.defined())
    return kernels::add_rms_norm(residual.x_TD, residual.added_TD, norm.weight, norm_epsilon_,
                                 norm_order_);
  const at::Tensor sum_TD = residual.sum();
  return {sum_TD, sum_TD};
}

Residual DecoderBlock::forward(const Residual& input, const BlockBatch& batch) const {
  const kernels::AddedNorm first = added(input, before_attention_);
  const at::Tensor attended = normalise(attend(first.norm, batch), after_attention_);
  const kernels::AddedNorm middle =
      added({first.sum, scaled(attended, residual_scale_)}, before_ffn_);
  const at::Tensor fed = normalise(feed_forward(middle.norm, batch.draw_key), after_ffn_);
  return {middle.sum, scaled(fed, residual_scale_)};
}

// Norms of queries and keys go with the rotation in one op unless they do not fit its layout.
bool DecoderBlock::norms_apart(const FeatureOrder& order) const {
  return norm_over_heads_ || order.from_E.defined();
}

// [T, heads, E] of a projection, as the rotation takes it.
at::Tensor DecoderBlock::heads(const at::Tensor& projected, const Norm& norm,
                               const FeatureOrder& order) const {
  const auto in_heads = [&](const at::Tensor& x) { return x.view({x.size(0), -1, head_dim_}); };
  if (!norms_apart(order)) return in_heads(projected);
  const at::Tensor x_THE = norm_over_heads_ ? in_heads(normalise(projected, norm))
                                            : normalise(in_heads(projected), norm);
  return in_order(x_THE, order);
}

at::Tensor DecoderBlock::attend(const at::Tensor& x_TD, const BlockBatch& batch) const {
  const int64_t tokens = x_TD.size(0);
  const std::vector<at::Tensor> projected =
      query_key_value_.forward({&query_, &key_, &value_}, x_TD, batch.draw_key);
  const at::Tensor q_THE = heads(projected[0], query_norm_, batch.feature_order),
                   k_TKE = heads(projected[1], key_norm_, batch.feature_order),
                   v_TKE = projected[2].view({tokens, -1, head_dim_});
  kernels::HeadTransform transform{.norm_epsilon = norm_epsilon_, .norm_order = norm_order_};
  if (!norms_apart(batch.feature_order)) {
    transform.query_norm_E = query_norm_.weight;
    transform.key_norm_E = key_norm_.weight;
  }
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
