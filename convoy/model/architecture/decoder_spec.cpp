// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/architecture/decoder_spec.h"

#include <algorithm>
#include <utility>

namespace convoy::architecture {
namespace {

class LayerList {
 public:
  LayerList(std::vector<ParameterDeclaration>& declared, int64_t index)
      : declared_(declared), prefix_("model.layers." + std::to_string(index) + ".") {}

  void linear(const std::string& suffix, int64_t in, int64_t out, bool bias) {
    declared_.push_back({prefix_ + suffix + ".weight", {out, in}});
    if (bias) declared_.push_back({prefix_ + suffix + ".bias", {out}});
  }
  void norm(const std::string& suffix, int64_t size) { other(suffix + ".weight", {size}); }
  void other(const std::string& suffix, std::vector<int64_t> shape) {
    declared_.push_back({prefix_ + suffix, std::move(shape)});
  }

 private:
  std::vector<ParameterDeclaration>& declared_;
  std::string prefix_;
};

void declare_attention(const DecoderSpec& spec, const LayerSpec& layer, LayerList& list) {
  const int64_t head_dim = spec.head_dim_of(layer);
  const int64_t query = spec.num_heads * head_dim;
  const int64_t key = spec.kv_heads_of(layer) * head_dim;
  for (const StoredMap& map : query_key_value_maps(spec, layer))
    list.linear(map.suffix, spec.hidden_size, map.out, spec.qkv_bias);
  list.linear("self_attn.o_proj", query, spec.hidden_size, spec.attention_output_bias);
  if (!spec.query_key_norm || spec.weightless_head_norms) return;
  list.norm("self_attn.q_norm", spec.norm_over_heads ? query : head_dim);
  if (layer.keys_of == kOwnKeys)
    list.norm("self_attn.k_norm", spec.norm_over_heads ? key : head_dim);
}

void declare_delta_net(const DecoderSpec& spec, LayerList& list) {
  const DeltaNetSpec& sizes = spec.delta_net;
  for (const StoredMap& map : delta_net_maps(spec))
    list.linear(map.suffix, spec.hidden_size, map.out, false);
  list.linear("linear_attn.out_proj", sizes.value_width(), spec.hidden_size, false);
  list.other("linear_attn.conv1d.weight", {sizes.conv_channels(), 1, sizes.conv_width});
  list.other("linear_attn.dt_bias", {sizes.num_value_heads});
  list.other("linear_attn.A_log", {sizes.num_value_heads});
  list.norm("linear_attn.norm", sizes.value_head_dim);
}

void declare_layer(const DecoderSpec& spec, const LayerSpec& layer, LayerList list) {
  if (layer.mixer == TokenMixer::GatedDeltaNet)
    declare_delta_net(spec, list);
  else
    declare_attention(spec, layer, list);
  for (const StoredMap& map : gate_up_maps(spec, layer))
    list.linear(map.suffix, spec.hidden_size, map.out, spec.ffn_bias);
  list.linear("mlp.down_proj", spec.ffn_size_of(layer), spec.hidden_size, spec.ffn_bias);
  for (const std::string* suffix : {&spec.norms.before_attention, &spec.norms.after_attention,
                                    &spec.norms.before_ffn, &spec.norms.after_ffn})
    if (!suffix->empty()) list.norm(*suffix, spec.hidden_size);
  if (spec.layer_inputs.are_there()) {
    list.linear("per_layer_input_gate", spec.hidden_size, spec.layer_inputs.width, false);
    list.linear("per_layer_projection", spec.layer_inputs.width, spec.hidden_size, false);
    list.norm("post_per_layer_input_norm", spec.hidden_size);
  }
  if (spec.layer_scalars) list.other("layer_scalar", {1});
}

void declare_layer_inputs(const DecoderSpec& spec, std::vector<ParameterDeclaration>& declared) {
  if (!spec.layer_inputs.are_there()) return;
  const int64_t all_layers = spec.num_layers() * spec.layer_inputs.width;
  declared.push_back(
      {"model.embed_tokens_per_layer.weight", {spec.layer_inputs.vocab_size, all_layers}});
  declared.push_back({"model.per_layer_model_projection.weight", {all_layers, spec.hidden_size}});
  declared.push_back({"model.per_layer_projection_norm.weight", {spec.layer_inputs.width}});
}

}  // namespace

int64_t DecoderSpec::num_layers_with(TokenMixer mixer) const {
  return std::count_if(layers.begin(), layers.end(),
                       [mixer](const LayerSpec& layer) { return layer.mixer == mixer; });
}

int64_t DecoderSpec::widest_ffn() const {
  int64_t widest = ffn_size;
  for (const LayerSpec& layer : layers) widest = std::max(widest, ffn_size_of(layer));
  return widest;
}

int64_t DecoderSpec::widest_head() const {
  int64_t widest = head_dim;
  for (const LayerSpec& layer : layers) widest = std::max(widest, head_dim_of(layer));
  return widest;
}

int64_t DecoderSpec::head_dim_of_rope(int64_t rope) const {
  const auto layer = std::find_if(layers.begin(), layers.end(),
                                  [rope](const LayerSpec& each) { return each.rope == rope; });
  return layer == layers.end() ? head_dim : head_dim_of(*layer);
}

std::vector<StoredMap> query_key_value_maps(const DecoderSpec& spec, const LayerSpec& layer) {
  const int64_t query = spec.num_heads * spec.head_dim_of(layer);
  const int64_t key = spec.kv_heads_of(layer) * spec.head_dim_of(layer);
  if (spec.fused_qkv) return {{"self_attn.qkv_proj", query + 2 * key}};
  const bool has_gates_in_queries = spec.attention_gate && !spec.gate_map;
  std::vector<StoredMap> maps{{"self_attn.q_proj", has_gates_in_queries ? 2 * query : query}};
  if (layer.keys_of == kOwnKeys) {
    maps.push_back({"self_attn.k_proj", key});
    if (!layer.keys_are_values) maps.push_back({"self_attn.v_proj", key});
  }
  if (spec.gate_map) maps.push_back({kGateMap, query});
  return maps;
}

std::vector<StoredMap> delta_net_maps(const DecoderSpec& spec) {
  const DeltaNetSpec& sizes = spec.delta_net;
  return {{"linear_attn.in_proj_qkv", sizes.conv_channels()},
          {"linear_attn.in_proj_z", sizes.value_width()},
          {"linear_attn.in_proj_b", sizes.num_value_heads},
          {"linear_attn.in_proj_a", sizes.num_value_heads}};
}

std::vector<StoredMap> gate_up_maps(const DecoderSpec& spec, const LayerSpec& layer) {
  const int64_t width = spec.ffn_size_of(layer);
  if (spec.fused_gate_up) return {{"mlp.gate_up_proj", 2 * width}};
  return {{"mlp.gate_proj", width}, {"mlp.up_proj", width}};
}

std::vector<ParameterDeclaration> declare_parameters(const DecoderSpec& spec) {
  std::vector<ParameterDeclaration> declared{
      {"model.embed_tokens.weight", {spec.vocab_size, spec.hidden_size}}};
  declare_layer_inputs(spec, declared);
  for (size_t index = 0; index < spec.layers.size(); ++index)
    declare_layer(spec, spec.layers[index], LayerList(declared, static_cast<int64_t>(index)));
  declared.push_back({"model.norm.weight", {spec.hidden_size}});
  if (!spec.tied_head) declared.push_back({"lm_head.weight", {spec.vocab_size, spec.hidden_size}});
  return declared;
}

bool is_map_of_blocks(const ParameterDeclaration& parameter) {
  return parameter.shape.size() == 2 && !parameter.name.starts_with("model.embed_tokens") &&
         parameter.name != "lm_head.weight";
}

bool is_unread(const DecoderSpec& spec, const std::string& name) {
  for (size_t layer = 0; layer < spec.layers.size(); ++layer) {
    if (spec.layers[layer].keys_of == kOwnKeys) continue;
    const std::string module = "model.layers." + std::to_string(layer) + ".self_attn.";
    for (const char* part : {"k_proj.", "v_proj.", "k_norm."})
      if (name.starts_with(module + part)) return true;
  }
  return false;
}

}  // namespace convoy::architecture
