// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/nn/attention.h"

#include "convoy/model/kernels/attention/attention.h"
#include "convoy/model/nn/spec_kernels.h"

namespace convoy::nn {
namespace {

std::vector<int64_t> query_key_value_widths(const architecture::DecoderSpec& spec,
                                            const architecture::LayerSpec& layer) {
  const int64_t key = spec.kv_heads_of(layer) * spec.head_dim_of(layer);
  if (spec.fused_qkv) return {spec.num_heads * spec.head_dim_of(layer), key, key};
  std::vector<int64_t> widths;
  for (const architecture::StoredMap& map : architecture::query_key_value_maps(spec, layer))
    widths.push_back(map.out);
  return widths;
}

}  // namespace

// Members are built in the order of their declaration, which is the order of the checkpoint.
Attention::Attention(const architecture::DecoderSpec& spec, int64_t index,
                     const BlockSource& source)
    : index_(index),
      layer_(spec.layers[index]),
      head_dim_(spec.head_dim_of(layer_)),
      norm_epsilon_(spec.norm_epsilon),
      attention_scale_(spec.attention_scale),
      score_cap_(spec.score_cap),
      norm_order_(kernel_of(spec.norm_order)),
      norm_over_heads_(spec.norm_over_heads),
      weightless_norms_(spec.query_key_norm && spec.weightless_head_norms),
      has_gate_(spec.attention_gate),
      has_gate_map_(spec.gate_map),
      norms_values_(spec.value_norm),
      query_key_value_(source.projections(architecture::query_key_value_maps(spec, layer_),
                                          spec.hidden_size, spec.qkv_bias,
                                          query_key_value_widths(spec, layer_))),
      output_(source.linear("self_attn.o_proj", spec.num_heads * head_dim_, spec.hidden_size,
                            spec.attention_output_bias)) {
  if (!spec.query_key_norm || weightless_norms_) return;
  const int64_t heads_together = spec.norm_over_heads ? spec.num_heads : 1;
  const int64_t kv_heads_together = spec.norm_over_heads ? spec.kv_heads_of(layer_) : 1;
  query_norm_ = source.norm("self_attn.q_norm", heads_together * head_dim_);
  if (layer_.keys_of == architecture::kOwnKeys)
    key_norm_ = source.norm("self_attn.k_norm", kv_heads_together * head_dim_);
}

// Returns x itself if there is no norm.
at::Tensor Attention::normalise(const at::Tensor& x, const at::Tensor& weight) const {
  if (!weight.defined()) return x;
  // A part of a joined product has strided rows.
  return kernels::rms_norm(x.contiguous(), weight, norm_epsilon_, norm_order_);
}

// Undefined if there is no norm.
at::Tensor Attention::norm_weight(const BlockParameter& norm, const BlockBatch& batch) const {
  return weightless_norms_ ? batch.plain_norm_E : norm.value;
}

// Queries and keys are normalised and rotated by one op unless something comes between.
bool Attention::norms_apart(const BlockBatch& batch) const {
  return norm_over_heads_ || batch.feature_order.from_E.defined() ||
         batch.query_scale_T11.defined();
}

at::Tensor Attention::in_heads(const at::Tensor& projected) const {
  return projected.view({projected.size(0), -1, head_dim_});
}

// The heads in the form that the rotation takes.
at::Tensor Attention::heads(const at::Tensor& x_THE, const BlockParameter& norm,
                            const BlockBatch& batch) const {
  if (!norms_apart(batch)) return x_THE;
  const at::Tensor weight = norm_weight(norm, batch);
  const at::Tensor normed_THE = norm_over_heads_
                                    ? normalise(x_THE.flatten(1), weight).view(x_THE.sizes())
                                    : normalise(x_THE, weight);
  return in_order(normed_THE, batch.feature_order);
}

// The values are v_proj's output or, where keys are values, k_proj's.
at::Tensor Attention::values_of(const std::vector<at::Tensor>& projected,
                                const BlockBatch& batch) const {
  const at::Tensor v_TKE = in_heads(projected[layer_.keys_are_values ? 1 : 2]);
  return norms_values_ ? normalise(v_TKE, batch.plain_norm_E) : v_TKE;
}

Attention::Heads Attention::heads_of(const at::Tensor& x_TD, const BlockBatch& batch) const {
  const std::vector<at::Tensor> projected = query_key_value_.forward(x_TD, batch.draw_key);
  Heads found;
  if (has_gate_ && !has_gate_map_) {
    const at::Tensor both_THE = projected[0].view({x_TD.size(0), -1, 2 * head_dim_});
    found.q_THE = both_THE.narrow(2, 0, head_dim_).contiguous();
    found.gate_THE = both_THE.narrow(2, head_dim_, head_dim_);
  } else {
    found.q_THE = in_heads(projected[0]);
    if (has_gate_map_) found.gate_THE = in_heads(projected.back());
  }
  found.q_THE = heads(found.q_THE, query_norm_, batch);
  // A rotation of scaled queries is the scaled rotation, so the factor may come first.
  if (batch.query_scale_T11.defined()) found.q_THE = found.q_THE * batch.query_scale_T11;
  if (layer_.keys_of == architecture::kOwnKeys)
    found.made = {heads(in_heads(projected[1]), key_norm_, batch), values_of(projected, batch)};
  return found;
}

at::Tensor Attention::forward(const at::Tensor& x_TD, const BlockBatch& batch) const {
  const int64_t tokens = x_TD.size(0);
  const Heads found = heads_of(x_TD, batch);
  const at::Tensor out_TD = attend(found, batch).reshape({tokens, -1});
  if (!has_gate_) return output_.forward(out_TD, batch.draw_key);
  const at::Tensor gate_TD = found.gate_THE.reshape({tokens, -1});
  return output_.forward(kernels::gated_activation(gate_TD, out_TD, kernels::Activation::Sigmoid),
                         batch.draw_key);
}

kernels::HeadTransform Attention::transform_of(const BlockBatch& batch) const {
  kernels::HeadTransform transform{.norm_epsilon = norm_epsilon_, .norm_order = norm_order_};
  if (!norms_apart(batch)) {
    transform.query_norm_E = norm_weight(query_norm_, batch);
    transform.key_norm_E = norm_weight(key_norm_, batch);
  }
  if (layer_.rope != architecture::kNoRope) {
    transform.cos_PE = batch.cos_PE;
    transform.sin_PE = batch.sin_PE;
    transform.positions_T = batch.position_ids_T;
  }
  return transform;
}

kernels::AttentionConfig Attention::config_of(const BlockBatch& batch) const {
  return {.scale = attention_scale_,
          .sliding_window = layer_.sliding_window,
          .score_cap = score_cap_,
          .kernel = batch.attention};
}

at::Tensor Attention::attend(const Heads& found, const BlockBatch& batch) const {
  if (layer_.keys_of != architecture::kOwnKeys) return attend_to_others(found.q_THE, batch);
  const auto& [k_TKE, v_TKE] = found.made;
  const kernels::HeadTransform transform = transform_of(batch);
  if (batch.cache)
    return batch.cache->attend(index_, found.q_THE, k_TKE, v_TKE, transform, config_of(batch));
  const auto [turned_q_THE, turned_k_TKE] =
      kernels::transformed_heads(found.q_THE, k_TKE, transform);
  if (batch.made != nullptr) *batch.made = {turned_k_TKE, v_TKE};
  return kernels::packed_attention(turned_q_THE, turned_k_TKE, v_TKE, batch.rows, config_of(batch));
}

at::Tensor Attention::attend_to_others(const at::Tensor& q_THE, const BlockBatch& batch) const {
  const at::Tensor turned_q_THE = kernels::transformed_queries(q_THE, transform_of(batch));
  if (batch.cache) return batch.cache->attend_to_stored(index_, turned_q_THE, config_of(batch));
  return kernels::packed_attention(turned_q_THE, batch.read.k_TKE, batch.read.v_TKE, batch.rows,
                                   config_of(batch));
}

void Attention::quantize(const kernels::IntegerFormat& format) {
  query_key_value_.quantize(format);
  output_.quantize(format);
}

bool Attention::trains() const {
  return query_key_value_.trains() || output_.trains() || query_norm_.trains() ||
         key_norm_.trains();
}

void Attention::visit(const LinearVisitor& linear, const ParameterVisitor& parameter) {
  query_key_value_.visit(linear);
  linear(output_);
  visit_parameter(query_norm_, parameter);
  visit_parameter(key_norm_, parameter);
}

}  // namespace convoy::nn
