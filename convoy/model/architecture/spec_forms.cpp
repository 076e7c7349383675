// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/architecture/spec_forms.h"

#include <algorithm>
#include <utility>

namespace convoy::architecture {
namespace {

using Words = std::vector<std::pair<bool, const char*>>;

Words rotation_words(const DecoderSpec& spec) {
  const auto any_rope = [&](auto&& is_so) {
    return std::any_of(spec.ropes.begin(), spec.ropes.end(), is_so);
  };
  const auto has_kind = [&](RopeKind kind) {
    return any_rope([kind](const RopeSpec& rope) { return rope.kind == kind; });
  };
  const bool all_turn = std::none_of(spec.layers.begin(), spec.layers.end(),
                                     [](const LayerSpec& layer) { return layer.rope == kNoRope; });
  const auto is_partial = [&](const RopeSpec& rope) {
    const int64_t head_dim = spec.head_dim_of_rope(&rope - spec.ropes.data());
    return rope.rotated_features != 0 && rope.rotated_features != head_dim;
  };
  return {{has_kind(RopeKind::Linear), "rotation `linear`"},
          {has_kind(RopeKind::Llama3), "rotation `llama3`"},
          {has_kind(RopeKind::Yarn), "rotation `yarn`"},
          {has_kind(RopeKind::LongRope), "rotation `longrope`"},
          {has_kind(RopeKind::Proportional), "rotation `proportional`"},
          {any_rope(is_partial), "a part of each head is rotated"},
          {any_rope([](const RopeSpec& rope) { return rope.neighbours; }),
           "neighbouring features are rotated"},
          {!all_turn, "layers without a rotation"}};
}

Words norm_words(const DecoderSpec& spec) {
  const bool before = !spec.norms.before_attention.empty();
  const bool after = !spec.norms.after_attention.empty();
  const bool of_heads = spec.query_key_norm && !spec.norm_over_heads;
  return {{of_heads && !spec.weightless_head_norms, "norms of queries and keys"},
          {of_heads && spec.weightless_head_norms, "norms of queries and keys without a weight"},
          {spec.query_key_norm && spec.norm_over_heads, "norms of queries and keys over all heads"},
          {spec.embedding_norm, "a norm of embeddings without a weight"},
          {after && !before, "norms after attention and feed-forward"},
          {after && before, "norms before and after attention and feed-forward"},
          {spec.value_norm, "norms of values without a weight"},
          {spec.norm_order == NormOrder::ScaleByOnePlusThenCast, "norms times 1 + weight"}};
}

Words layer_words(const DecoderSpec& spec) {
  const auto any_layer = [&](auto&& is_so) {
    return std::any_of(spec.layers.begin(), spec.layers.end(), is_so);
  };
  return {{any_layer([&](const LayerSpec& layer) {
             return spec.head_dim_of(layer) != spec.head_dim_of(spec.layers.front());
           }),
           "two head sizes"},
          {any_layer([](const LayerSpec& layer) { return layer.keys_are_values; }),
           "keys that are values"},
          {any_layer([](const LayerSpec& layer) { return layer.keys_of != kOwnKeys; }),
           "keys and values shared by layers"},
          {any_layer([&](const LayerSpec& layer) {
             return spec.ffn_size_of(layer) != spec.ffn_size_of(spec.layers.front());
           }),
           "two widths of feed-forward"},
          {spec.layer_inputs.are_there(), "embeddings for each layer"},
          {spec.layer_scalars, "a scale of each layer's output"}};
}

Words map_words(const DecoderSpec& spec) {
  return {{spec.num_layers_with(TokenMixer::GatedDeltaNet) > 0, "layers of Gated DeltaNet"},
          {spec.attention_gate, "an output gate of attention"},
          {spec.fused_qkv, "fused qkv_proj"},
          {spec.fused_gate_up, "fused gate_up_proj"},
          {spec.qkv_bias, "biases of queries, keys and values"},
          {spec.attention_output_bias, "a bias of attention's output"},
          {spec.ffn_bias, "biases of the feed-forward"},
          {spec.activation == Activation::GeluTanh, "GELU"},
          {spec.embedding_scale != 1.0, "a scale of embeddings"},
          {spec.residual_scale != 1.0, "a scale of residuals"},
          {spec.logit_scale != 1.0, "a scale of logits"},
          {spec.score_cap != 0.0, "a soft cap on attention scores"},
          {spec.logit_cap != 0.0, "a soft cap on logits"},
          {spec.query_growth != 0.0, "queries that grow with their position"}};
}

}  // namespace

std::vector<std::string> forms_of(const DecoderSpec& spec) {
  std::vector<std::string> forms;
  for (const Words& words :
       {rotation_words(spec), norm_words(spec), layer_words(spec), map_words(spec)})
    for (const auto& [is_there, form] : words)
      if (is_there) forms.emplace_back(form);
  return forms;
}

}  // namespace convoy::architecture
