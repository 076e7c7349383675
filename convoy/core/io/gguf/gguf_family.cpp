// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/io/gguf/gguf_family.h"

#include <array>
#include <utility>

namespace convoy::gguf {
namespace {

constexpr std::array<Family, 17> kKnownFamilies = {{
    {.architecture = "llama",
     .model_type = "llama",
     .class_name = "LlamaForCausalLM",
     .permuted = true},
    {.architecture = "llama",
     .model_type = "mistral",
     .class_name = "MistralForCausalLM",
     .permuted = true},
    // Files of Mistral Small 3.1, whose converter knows only Ministral's architecture.
    {.architecture = "mistral3",
     .model_type = "mistral",
     .class_name = "MistralForCausalLM",
     .permuted = true},
    {.architecture = "mistral3",
     .model_type = "ministral3",
     .class_name = "Ministral3ForCausalLM",
     .permuted = true,
     .told_by = "attention.temperature_scale"},
    {.architecture = "qwen2", .model_type = "qwen2", .class_name = "Qwen2ForCausalLM"},
    {.architecture = "qwen3", .model_type = "qwen3", .class_name = "Qwen3ForCausalLM"},
    {.architecture = "gemma2",
     .model_type = "gemma2",
     .class_name = "Gemma2ForCausalLM",
     .norms_plus_one = true,
     .norms = NormNames::Around},
    {.architecture = "gemma3",
     .model_type = "gemma3_text",
     .class_name = "Gemma3ForCausalLM",
     .norms_plus_one = true,
     .norms = NormNames::Around},
    {.architecture = "gemma3",
     .model_type = "gemma3",
     .class_name = "Gemma3ForCausalLM",
     .norms_plus_one = true,
     .norms = NormNames::Around},
    {.architecture = "smollm3",
     .model_type = "smollm3",
     .class_name = "SmolLM3ForCausalLM",
     .permuted = true},
    {.architecture = "granite",
     .model_type = "granite",
     .class_name = "GraniteForCausalLM",
     .permuted = true},
    {.architecture = "seed_oss",
     .model_type = "seed_oss",
     .class_name = "SeedOssForCausalLM",
     .norms = NormNames::Around},
    {.architecture = "olmo2",
     .model_type = "olmo2",
     .class_name = "Olmo2ForCausalLM",
     .norms = NormNames::Around},
    {.architecture = "olmo2",
     .model_type = "olmo3",
     .class_name = "Olmo3ForCausalLM",
     .norms = NormNames::Around,
     .told_by = "attention.sliding_window"},
    {.architecture = "phi3",
     .model_type = "phi3",
     .class_name = "Phi3ForCausalLM",
     .fused_qkv = true,
     .fused_gate_up = true,
     .rotates_part = true},
    // The rows are not permuted: GLM rotates neighbours in transformers too.
    {.architecture = "chatglm",
     .model_type = "glm",
     .class_name = "GlmForCausalLM",
     .fused_gate_up = true,
     .rotates_part = true},
    {.architecture = "glm4",
     .model_type = "glm4",
     .class_name = "Glm4ForCausalLM",
     .norms = NormNames::GlmsAround,
     .fused_gate_up = true,
     .rotates_part = true},
}};

using NamePair = std::pair<std::string_view, std::string_view>;

// Pairs of transformers' name and the name in the file.
constexpr std::array<NamePair, 3> kOutsideLayers = {
    {{"model.embed_tokens", "token_embd"}, {"model.norm", "output_norm"}, {"lm_head", "output"}}};
constexpr std::array<NamePair, 10> kInLayers = {{{"input_layernorm", "attn_norm"},
                                                 {"self_attn.q_proj", "attn_q"},
                                                 {"self_attn.k_proj", "attn_k"},
                                                 {"self_attn.v_proj", "attn_v"},
                                                 {"self_attn.o_proj", "attn_output"},
                                                 {"self_attn.q_norm", "attn_q_norm"},
                                                 {"self_attn.k_norm", "attn_k_norm"},
                                                 {"mlp.gate_proj", "ffn_gate"},
                                                 {"mlp.up_proj", "ffn_up"},
                                                 {"mlp.down_proj", "ffn_down"}}};
// These two lists are searched before kInLayers, where ffn_up is the second map of a layer.
constexpr std::array<NamePair, 1> kFusedQkv = {{{"self_attn.qkv_proj", "attn_qkv"}}};
constexpr std::array<NamePair, 1> kFusedGateUp = {{{"mlp.gate_up_proj", "ffn_up"}}};
constexpr std::array<NamePair, 1> kNormBeforeFfn = {{{"post_attention_layernorm", "ffn_norm"}}};
constexpr std::array<NamePair, 3> kNormsAround = {
    {{"post_attention_layernorm", "post_attention_norm"},
     {"pre_feedforward_layernorm", "ffn_norm"},
     {"post_feedforward_layernorm", "post_ffw_norm"}}};
constexpr std::array<NamePair, 3> kGlmsNormsAround = {
    {{"post_self_attn_layernorm", "post_attention_norm"},
     {"post_attention_layernorm", "ffn_norm"},
     {"post_mlp_layernorm", "post_ffw_norm"}}};

std::span<const NamePair> norms_of(const Family& family) {
  if (family.norms == NormNames::Around) return kNormsAround;
  if (family.norms == NormNames::GlmsAround) return kGlmsNormsAround;
  return kNormBeforeFfn;
}

struct Side {
  std::string_view NamePair::*from;
  std::string_view NamePair::*to;
  std::string_view layer_from;
  std::string_view layer_to;
};
constexpr Side kToFile = {&NamePair::first, &NamePair::second, "model.layers.", "blk."};
constexpr Side kToOwn = {&NamePair::second, &NamePair::first, "blk.", "model.layers."};

std::optional<std::string_view> look_up(std::span<const NamePair> names, std::string_view name,
                                        const Side& side) {
  for (const NamePair& pair : names)
    if (pair.*side.from == name) return pair.*side.to;
  return std::nullopt;
}

std::optional<std::string_view> look_up_in_layer(const Family& family, std::string_view name,
                                                 const Side& side) {
  if (family.fused_qkv)
    if (const auto found = look_up(kFusedQkv, name, side)) return found;
  if (family.fused_gate_up)
    if (const auto found = look_up(kFusedGateUp, name, side)) return found;
  if (const auto found = look_up(norms_of(family), name, side)) return found;
  return look_up(kInLayers, name, side);
}

std::optional<std::string> translated(const Family& family, std::string_view name,
                                      const Side& side) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view kind = name.substr(dot);
  if (kind != ".weight" && kind != ".bias") return std::nullopt;
  const std::string_view module = name.substr(0, dot);
  if (!module.starts_with(side.layer_from)) {
    const auto found = look_up(kOutsideLayers, module, side);
    return found ? std::optional(std::string(*found) + std::string(kind)) : std::nullopt;
  }
  const std::string_view rest = module.substr(side.layer_from.size());
  const size_t end = rest.find_first_not_of("0123456789");
  if (end == 0 || end == std::string_view::npos || rest[end] != '.') return std::nullopt;
  const auto found = look_up_in_layer(family, rest.substr(end + 1), side);
  if (!found) return std::nullopt;
  return std::string(side.layer_to) + std::string(rest.substr(0, end)) + "." + std::string(*found) +
         std::string(kind);
}

}  // namespace

std::span<const Family> families() { return kKnownFamilies; }

const Family* family_of_model_type(std::string_view model_type) {
  for (const Family& family : kKnownFamilies)
    if (family.model_type == model_type) return &family;
  return nullptr;
}

const Family* family_of(std::string_view architecture, std::string_view model_type) {
  for (const Family& family : kKnownFamilies)
    if (family.architecture == architecture && family.model_type == model_type) return &family;
  return nullptr;
}

std::optional<std::string> file_name_of(const Family& family, std::string_view own_name) {
  return translated(family, own_name, kToFile);
}

std::optional<std::string> own_name_of(const Family& family, std::string_view file_name) {
  return translated(family, file_name, kToOwn);
}

Rows rows_of(const Family& family, std::string_view own_name) {
  if (!family.permuted) return Rows::AsTheyAre;
  if (own_name.find(".self_attn.q_proj.") != std::string_view::npos) return Rows::OfQueries;
  if (own_name.find(".self_attn.k_proj.") != std::string_view::npos) return Rows::OfKeys;
  return Rows::AsTheyAre;
}

bool is_norm(std::string_view own_name) { return own_name.ends_with("norm.weight"); }

}  // namespace convoy::gguf
