// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/nn/decoder_block.h"

#include <algorithm>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/attention/attention.h"

namespace convoy::nn {
namespace {

std::vector<const Linear*> pointers_to(const std::vector<Linear>& maps) {
  std::vector<const Linear*> pointers;
  for (const Linear& map : maps) pointers.push_back(&map);
  return pointers;
}

std::vector<Linear*> pointers_to(std::vector<Linear>& maps) {
  std::vector<Linear*> pointers;
  for (Linear& map : maps) pointers.push_back(&map);
  return pointers;
}

// The outputs of maps that are stored apart, or as the rows of one. Features lie side by side.
std::vector<at::Tensor> outputs_of(const std::vector<Linear>& maps, const JoinedLinears& joined,
                                   const std::vector<int64_t>& widths, const at::Tensor& x_TD,
                                   DrawKey draw_key) {
  if (maps.size() > 1) return joined.forward(pointers_to(maps), x_TD, draw_key);
  return maps.front().forward(x_TD, draw_key).split_with_sizes(widths, 1);
}

void quantize_maps(std::vector<Linear>& maps, JoinedLinears& joined,
                   const kernels::IntegerFormat& format) {
  if (maps.size() > 1)
    joined.quantize(pointers_to(maps), format);
  else
    maps.front().quantize(format);
}

bool any_trains(const std::vector<Linear>& maps) {
  return std::any_of(maps.begin(), maps.end(), [](const Linear& map) { return map.trains(); });
}

}  // namespace

// Members are built in the order of their declaration, which is the order of the checkpoint.
DecoderBlock::DecoderBlock(const architecture::DecoderSpec& spec, int64_t index,
                           const ParameterSource& source)
    : prefix_(fmt::format("model.layers.{}.", index)),
      index_(index),
      layer_(spec.layers[index]),
      head_dim_(spec.head_dim),
      norm_epsilon_(spec.norm_epsilon),
      attention_scale_(spec.attention_scale),
      score_cap_(spec.score_cap),
      residual_scale_(spec.residual_scale),
      norm_order_(kernel_of(spec.norm_order)),
      norm_over_heads_(spec.norm_over_heads),
      activation_(kernel_of(spec.activation)),
      query_key_value_widths_({spec.num_heads * spec.head_dim, spec.num_kv_heads * spec.head_dim,
                               spec.num_kv_heads * spec.head_dim}),
      gate_up_widths_({spec.ffn_size, spec.ffn_size}),
      query_key_value_maps_(make_maps(architecture::query_key_value_maps(spec), spec.hidden_size,
                                      spec.qkv_bias, source)),
      attention_output_(make_linear("self_attn.o_proj", spec.num_heads * spec.head_dim,
                                    spec.hidden_size, spec.attention_output_bias, source)),
      gate_up_maps_(
          make_maps(architecture::gate_up_maps(spec), spec.hidden_size, spec.ffn_bias, source)),
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

std::vector<Linear> DecoderBlock::make_maps(const std::vector<architecture::StoredMap>& maps,
                                            int64_t in, bool bias,
                                            const ParameterSource& source) const {
  std::vector<Linear> made;
  made.reserve(maps.size());
  for (const architecture::StoredMap& map : maps)
    made.push_back(make_linear(map.suffix, in, map.out, bias, source));
  return made;
}

DecoderBlock::Norm DecoderBlock::make_norm(const std::string& suffix, int64_t size,
                                           const ParameterSource& source) const {
  if (suffix.empty()) return {};
  const std::string name = prefix_ + suffix + ".weight";
  return {name, source({name, {size}})};
}

at::Tensor DecoderBlock::normalise(const at::Tensor& x, const Norm& norm) const {
  if (!norm.weight.defined()) return x;
  // A part of a joined product has strided rows.
  return kernels::rms_norm(x.contiguous(), norm.weight, norm_epsilon_, norm_order_);
}

// The sum of a residual, and the input of the maps that follow: the norm of the sum, or the sum.
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

// Queries and keys are normalised and rotated by one op unless something comes between.
bool DecoderBlock::norms_apart(const BlockBatch& batch) const {
  return norm_over_heads_ || batch.feature_order.from_E.defined() ||
         batch.query_scale_T11.defined();
}

// [T, heads, E] of a projection, as the rotation takes it.
at::Tensor DecoderBlock::heads(const at::Tensor& projected, const Norm& norm,
                               const BlockBatch& batch) const {
  const auto in_heads = [&](const at::Tensor& x) { return x.view({x.size(0), -1, head_dim_}); };
  if (!norms_apart(batch)) return in_heads(projected);
  const at::Tensor x_THE = norm_over_heads_ ? in_heads(normalise(projected, norm))
                                            : normalise(in_heads(projected), norm);
  return in_order(x_THE, batch.feature_order);
}

at::Tensor DecoderBlock::attend(const at::Tensor& x_TD, const BlockBatch& batch) const {
  const int64_t tokens = x_TD.size(0);
  const std::vector<at::Tensor> projected = outputs_of(
      query_key_value_maps_, query_key_value_, query_key_value_widths_, x_TD, batch.draw_key);
  const at::Tensor unscaled_q_THE = heads(projected[0], query_norm_, batch),
                   k_TKE = heads(projected[1], key_norm_, batch),
                   v_TKE = projected[2].view({tokens, -1, head_dim_});
  // A rotation of scaled queries is the scaled rotation, so the factor may come first.
  const at::Tensor q_THE =
      batch.query_scale_T11.defined() ? unscaled_q_THE * batch.query_scale_T11 : unscaled_q_THE;
  kernels::HeadTransform transform{.norm_epsilon = norm_epsilon_, .norm_order = norm_order_};
  if (!norms_apart(batch)) {
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
                                        .score_cap = score_cap_,
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
  const std::vector<at::Tensor> inner =
      outputs_of(gate_up_maps_, gate_up_, gate_up_widths_, x_TD, draw_key);
  return down_.forward(kernels::gated_activation(inner[0], inner[1], activation_), draw_key);
}

void DecoderBlock::join_projections() {
  if (query_key_value_maps_.size() > 1) query_key_value_.join(pointers_to(query_key_value_maps_));
  if (gate_up_maps_.size() > 1) gate_up_.join(pointers_to(gate_up_maps_));
}

void DecoderBlock::quantize(const kernels::IntegerFormat& format) {
  quantize_maps(query_key_value_maps_, query_key_value_, format);
  attention_output_.quantize(format);
  quantize_maps(gate_up_maps_, gate_up_, format);
  down_.quantize(format);
}

bool DecoderBlock::trains() const {
  if (any_trains(query_key_value_maps_) || attention_output_.trains() ||
      any_trains(gate_up_maps_) || down_.trains())
    return true;
  for (const Norm* norm : {&query_norm_, &key_norm_, &before_attention_, &after_attention_,
                           &before_ffn_, &after_ffn_}) {
    if (norm->weight.defined() && norm->weight.requires_grad()) return true;
  }
  return false;
}

void DecoderBlock::visit(
    const std::function<void(Linear&)>& linear,
    const std::function<void(const std::string& name, at::Tensor& weight)>& norm) {
  for (Linear& each : query_key_value_maps_) linear(each);
  linear(attention_output_);
  for (Norm* each : {&query_norm_, &key_norm_}) {
    if (each->weight.defined()) norm(each->name, each->weight);
  }
  for (Linear& each : gate_up_maps_) linear(each);
  linear(down_);
  for (Norm* each : {&before_attention_, &after_attention_, &before_ffn_, &after_ffn_}) {
    if (each->weight.defined()) norm(each->name, each->weight);
  }
}

}  // namespace convoy::nn
