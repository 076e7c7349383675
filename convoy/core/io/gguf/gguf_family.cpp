// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/io/gguf/gguf_family.h"

#include <array>
#include <utility>

namespace convoy::gguf {
namespace {

constexpr std::array<Family, 26> kKnownFamilies = {{
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
    {.architecture = "qwen35",
     .model_type = "qwen3_5_text",
     .class_name = "Qwen3_5ForCausalLM",
     .norms_plus_one = true,
     .norms = NormNames::Around,
     .rotates_part = true,
     .delta_net = true},
    {.architecture = "qwen35",
     .model_type = "qwen3_5",
     .class_name = "Qwen3_5ForCausalLM",
     .norms_plus_one = true,
     .norms = NormNames::Around,
     .rotates_part = true,
     .delta_net = true},
    {.architecture = "gemma",
     .model_type = "gemma",
     .class_name = "GemmaForCausalLM",
     .norms_plus_one = true},
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
    {.architecture = "gemma4",
     .model_type = "gemma4_text",
     .class_name = "Gemma4ForCausalLM",
     .norms = NormNames::Around,
     .layer_inputs = true},
    {.architecture = "gemma4",
     .model_type = "gemma4",
     .class_name = "Gemma4ForCausalLM",
     .norms = NormNames::Around,
     .layer_inputs = true},
    {.architecture = "gemma4",
     .model_type = "gemma4_unified_text",
     .class_name = "Gemma4ForCausalLM",
     .norms = NormNames::Around,
     .layer_inputs = true},
    {.architecture = "gemma4",
     .model_type = "gemma4_unified",
     .class_name = "Gemma4ForCausalLM",
     .norms = NormNames::Around,
     .layer_inputs = true},
    {.architecture = "muse-glimmer",
     .model_type = "muse_glimmer_text",
     .class_name = "MuseGlimmerText",
     .permuted = true,
     .norms_plus_one = true,
     .final_norm_as_it_is = true,
     .norms = NormNames::Around,
     .gate_map = true},
    {.architecture = "muse-glimmer",
     .model_type = "muse_glimmer",
     .class_name = "MuseGlimmerText",
     .permuted = true,
     .norms_plus_one = true,
     .final_norm_as_it_is = true,
     .norms = NormNames::Around,
     .gate_map = true},
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
constexpr std::array<NamePair, 7> kDeltaNet = {{{"linear_attn.in_proj_qkv", "attn_qkv"},
                                                {"linear_attn.in_proj_z", "attn_gate"},
                                                {"linear_attn.in_proj_b", "ssm_beta"},
                                                {"linear_attn.in_proj_a", "ssm_alpha"},
                                                {"linear_attn.conv1d", "ssm_conv1d"},
                                                {"linear_attn.norm", "ssm_norm"},
                                                {"linear_attn.out_proj", "ssm_out"}}};
// Whole names, because their endings differ in the file.
constexpr std::array<NamePair, 2> kWholeDeltaNet = {
    {{"linear_attn.A_log", "ssm_a"}, {"linear_attn.dt_bias", "ssm_dt.bias"}}};
constexpr std::array<NamePair, 3> kLayerInputsOutside = {
    {{"model.embed_tokens_per_layer", "per_layer_token_embd"},
     {"model.per_layer_model_projection", "per_layer_model_proj"},
     {"model.per_layer_projection_norm", "per_layer_proj_norm"}}};
constexpr std::array<NamePair, 3> kLayerInputs = {{{"per_layer_input_gate", "inp_gate"},
                                                   {"per_layer_projection", "proj"},
                                                   {"post_per_layer_input_norm", "post_norm"}}};
constexpr std::array<NamePair, 1> kWholeLayerInputs = {
    {{"layer_scalar", "layer_output_scale.weight"}}};
constexpr std::array<NamePair, 1> kGateMap = {{{"self_attn.gate_proj", "attn_gate"}}};
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
  if (family.delta_net)
    if (const auto found = look_up(kDeltaNet, name, side)) return found;
  if (family.layer_inputs)
    if (const auto found = look_up(kLayerInputs, name, side)) return found;
  if (family.gate_map)
    if (const auto found = look_up(kGateMap, name, side)) return found;
  if (const auto found = look_up(norms_of(family), name, side)) return found;
  return look_up(kInLayers, name, side);
}

std::optional<std::string_view> look_up_outside(const Family& family, std::string_view name,
                                                const Side& side) {
  if (family.layer_inputs)
    if (const auto found = look_up(kLayerInputsOutside, name, side)) return found;
  return look_up(kOutsideLayers, name, side);
}

// "model.layers.3." of "model.layers.3.mlp.up_proj.weight"; empty outside of layers.
std::string_view layer_prefix(std::string_view name, const Side& side) {
  if (!name.starts_with(side.layer_from)) return {};
  const size_t end = name.find_first_not_of("0123456789", side.layer_from.size());
  if (end == side.layer_from.size() || end == std::string_view::npos || name[end] != '.') return {};
  return name.substr(0, end + 1);
}

std::optional<std::string> translated(const Family& family, std::string_view name,
                                      const Side& side) {
  const std::string_view prefix = layer_prefix(name, side);
  const std::string_view rest = name.substr(prefix.size());
  const auto in_layer = [&](std::string_view translated_rest) {
    const std::string_view number = prefix.substr(side.layer_from.size());
    return std::string(side.layer_to) + std::string(number) + std::string(translated_rest);
  };
  if (family.delta_net && !prefix.empty())
    if (const auto found = look_up(kWholeDeltaNet, rest, side)) return in_layer(*found);
  if (family.layer_inputs && !prefix.empty())
    if (const auto found = look_up(kWholeLayerInputs, rest, side)) return in_layer(*found);
  const size_t dot = rest.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string kind(rest.substr(dot));
  if (kind != ".weight" && kind != ".bias") return std::nullopt;
  const std::string_view module = rest.substr(0, dot);
  const auto found = prefix.empty() ? look_up_outside(family, module, side)
                                    : look_up_in_layer(family, module, side);
  if (!found) return std::nullopt;
  return prefix.empty() ? std::string(*found) + kind : in_layer(std::string(*found) + kind);
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

Stored stored_as(const Family& family, std::string_view own_name) {
  if (own_name.ends_with(".linear_attn.A_log")) return Stored::MinusExp;
  const bool adds_one = family.norms_plus_one && own_name.ends_with("norm.weight") &&
                        !own_name.ends_with(".linear_attn.norm.weight") &&
                        !(family.final_norm_as_it_is && own_name == "model.norm.weight");
  return adds_one ? Stored::PlusOne : Stored::AsTheyAre;
}

}  // namespace convoy::gguf
