// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/architecture/decoder_spec.h"

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
  void norm(const std::string& suffix, int64_t size) {
    declared_.push_back({prefix_ + suffix + ".weight", {size}});
  }

 private:
  std::vector<ParameterDeclaration>& declared_;
  std::string prefix_;
};

void declare_layer(const DecoderSpec& spec, LayerList list) {
  const int64_t hidden = spec.hidden_size;
  const int64_t query = spec.num_heads * spec.head_dim;
  const int64_t key = spec.num_kv_heads * spec.head_dim;
  for (const StoredMap& map : query_key_value_maps(spec))
    list.linear(map.suffix, hidden, map.out, spec.qkv_bias);
  list.linear("self_attn.o_proj", query, hidden, spec.attention_output_bias);
  for (const StoredMap& map : gate_up_maps(spec))
    list.linear(map.suffix, hidden, map.out, spec.ffn_bias);
  list.linear("mlp.down_proj", spec.ffn_size, hidden, spec.ffn_bias);
  if (spec.query_key_norm) {
    list.norm("self_attn.q_norm", spec.norm_over_heads ? query : spec.head_dim);
    list.norm("self_attn.k_norm", spec.norm_over_heads ? key : spec.head_dim);
  }
  for (const std::string* suffix : {&spec.norms.before_attention, &spec.norms.after_attention,
                                    &spec.norms.before_ffn, &spec.norms.after_ffn})
    if (!suffix->empty()) list.norm(*suffix, hidden);
}

}  // namespace

std::vector<StoredMap> query_key_value_maps(const DecoderSpec& spec) {
  const int64_t query = spec.num_heads * spec.head_dim;
  const int64_t key = spec.num_kv_heads * spec.head_dim;
  if (spec.fused_qkv) return {{"self_attn.qkv_proj", query + 2 * key}};
  return {{"self_attn.q_proj", query}, {"self_attn.k_proj", key}, {"self_attn.v_proj", key}};
}

std::vector<StoredMap> gate_up_maps(const DecoderSpec& spec) {
  if (spec.fused_gate_up) return {{"mlp.gate_up_proj", 2 * spec.ffn_size}};
  return {{"mlp.gate_proj", spec.ffn_size}, {"mlp.up_proj", spec.ffn_size}};
}

std::vector<ParameterDeclaration> declare_parameters(const DecoderSpec& spec) {
  std::vector<ParameterDeclaration> declared{
      {"model.embed_tokens.weight", {spec.vocab_size, spec.hidden_size}}};
  for (size_t index = 0; index < spec.layers.size(); ++index)
    declare_layer(spec, LayerList(declared, static_cast<int64_t>(index)));
  declared.push_back({"model.norm.weight", {spec.hidden_size}});
  if (!spec.tied_head) declared.push_back({"lm_head.weight", {spec.vocab_size, spec.hidden_size}});
  return declared;
}

}  // namespace convoy::architecture
