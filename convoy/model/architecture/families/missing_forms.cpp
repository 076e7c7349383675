// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/architecture/families/missing_forms.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "convoy/model/architecture/families/family.h"

namespace convoy::families {
namespace {

constexpr const char* kExperts = "a mixture of experts";
constexpr const char* kLatent = "a mixture of experts, multi-head latent attention";
constexpr const char* kSparseLatent =
    "a mixture of experts, multi-head latent attention that chooses its keys";
constexpr const char* kFusedDeltaNetExperts =
    "Gated DeltaNet layers with fused maps, a mixture of experts";
constexpr const char* kOtherDeltaNet =
    "Gated DeltaNet layers with a map for queries, keys and values each, norms in other places by "
    "layer";
constexpr const char* kGemma3n = "several streams of hidden states, sparse activations";
constexpr const char* kLlama4 =
    "a mixture of experts, attention in chunks, norms of queries and keys in a part of the layers, "
    "queries that grow with their position in the others";
constexpr const char* kStateSpace = "state-space layers in place of attention";
constexpr const char* kMamba2 = "Mamba-2 layers";
constexpr const char* kMamba2Experts = "Mamba-2 layers, a mixture of experts";
constexpr const char* kParallel = "layer norms, attention and feed-forward in parallel";
constexpr const char* kSees = "the text part of a checkpoint that also sees";
constexpr const char* kSeesPlaces =
    "the text part of a checkpoint that also sees, rotation by places in an image";
constexpr const char* kEncoder = "attention that looks ahead";

// Types of one kind are listed together.
constexpr std::array kMissingTypes{
    MissingType{"qwen3_5_moe", "Qwen3.5 and Qwen3.6 35B-A3B and up", kExperts, "qwen3_5"},
    MissingType{"qwen3_5_moe_text", "Qwen3.5 and Qwen3.6 35B-A3B and up", kExperts, "qwen3_5"},
    MissingType{"qwen3_next", "Qwen3-Next 80B-A3B, Qwen3-Coder-Next", kFusedDeltaNetExperts,
                "qwen3_5"},
    MissingType{"olmo_hybrid", "OLMo Hybrid 7B", kOtherDeltaNet, "olmo3"},
    MissingType{"kimi_linear", "Kimi Linear 48B-A3B",
                "Kimi Delta Attention layers, a mixture of experts, multi-head latent attention",
                "qwen3"},
    MissingType{"gemma3n", "Gemma 3n E2B, E4B", kGemma3n, "gemma4"},
    MissingType{"gemma3n_text", "Gemma 3n E2B, E4B", kGemma3n, "gemma4"},
    MissingType{"gpt_oss", "gpt-oss 20B, 120B", "a mixture of experts, attention sinks", "qwen3"},
    MissingType{"qwen3_moe", "Qwen3 30B-A3B, 235B-A22B", kExperts, "qwen3"},
    MissingType{"qwen2_moe", "Qwen1.5-MoE, Qwen2 57B-A14B", kExperts, "qwen2"},
    MissingType{"mixtral", "Mixtral 8x7B, 8x22B", kExperts, "mistral"},
    MissingType{"mistral4", "Mistral Small 4", kLatent, "mistral3"},
    MissingType{"llama4", "Llama 4 Scout, Maverick", kLlama4, "llama"},
    MissingType{"llama4_text", "Llama 4 Scout, Maverick", kLlama4, "llama"},
    MissingType{"deepseek_v2", "DeepSeek-V2, V2-Lite", kLatent, "qwen2"},
    MissingType{"deepseek_v3", "DeepSeek-V3, R1", kLatent, "qwen2"},
    MissingType{"deepseek_v32", "DeepSeek-V3.2", kSparseLatent, "qwen2"},
    MissingType{"kimi_k2", "Kimi K2", kLatent, "qwen3"},
    MissingType{"glm4_moe", "GLM-4.5, 4.6, 4.7", kExperts, "glm4"},
    MissingType{"glm4_moe_lite", "GLM-4.7-Flash", kLatent, "glm4"},
    MissingType{"glm_moe_dsa", "GLM-5", kSparseLatent, "glm4"},
    MissingType{"olmoe", "OLMoE 1B-7B", kExperts, "olmo2"},
    MissingType{"flex_olmo", "FlexOlmo 7x7B", kExperts, "olmo2"},
    MissingType{"phimoe", "Phi-3.5-MoE", "a mixture of experts, layer norms", "phi3"},
    MissingType{"granitemoe", "Granite 3 1B-A400M, 3B-A800M", kExperts, "granite"},
    MissingType{"granitemoeshared", "Granite with shared experts", kExperts, "granite"},
    MissingType{"granitemoehybrid", "Granite 4", kMamba2Experts, "granite"},
    MissingType{"ernie4_5_moe", "ERNIE 4.5 21B-A3B, 300B-A47B", kExperts, "llama"},
    MissingType{"hunyuan_v1_moe", "Hunyuan A13B", kExperts, "qwen3"},
    MissingType{"minimax_m2", "MiniMax-M2", kExperts, "qwen3"},
    MissingType{"jamba", "Jamba", "Mamba layers, a mixture of experts", "llama"},
    MissingType{"nemotron_h", "Nemotron-H, Nemotron 3 Nano", kMamba2Experts, "llama"},
    MissingType{"bamba", "Bamba 9B", kMamba2, "llama"},
    MissingType{"zamba2", "Zamba2", kMamba2, "llama"},
    MissingType{"falcon_h1", "Falcon-H1", kMamba2, "llama"},
    MissingType{"mamba", "Mamba", kStateSpace, "llama"},
    MissingType{"mamba2", "Mamba-2", kStateSpace, "llama"},
    MissingType{"falcon_mamba", "Falcon Mamba 7B", kStateSpace, "llama"},
    MissingType{"recurrent_gemma", "RecurrentGemma 2B, 9B", "recurrent layers", "gemma3"},
    MissingType{"rwkv", "RWKV-4", "recurrent layers in place of attention", "llama"},
    MissingType{"lfm2", "LFM2", "layers of short convolutions", "qwen3"},
    MissingType{"lfm2_moe", "LFM2 8B-A1B", "layers of short convolutions, a mixture of experts",
                "qwen3"},
    MissingType{"phi", "Phi-1, Phi-1.5, Phi-2", kParallel, "phi3"},
    MissingType{"cohere", "Command R, Aya Expanse", kParallel, "llama"},
    MissingType{"cohere2", "Command R7B, Command A", kParallel, "llama"},
    MissingType{"falcon", "Falcon 7B, 40B", kParallel, "llama"},
    MissingType{"gpt_neox", "Pythia, GPT-NeoX 20B", kParallel, "llama"},
    MissingType{"gpt2", "GPT-2",
                "layer norms, learnt embeddings of positions, a feed-forward without a gate",
                "llama"},
    MissingType{"starcoder2", "StarCoder2", "layer norms, a feed-forward without a gate", "qwen2"},
    MissingType{"qwen2_vl", "Qwen2-VL", kSeesPlaces, "qwen2"},
    MissingType{"qwen2_5_vl", "Qwen2.5-VL", kSeesPlaces, "qwen2"},
    MissingType{"qwen3_vl", "Qwen3-VL, dense", kSeesPlaces, "qwen3"},
    MissingType{"mllama", "Llama 3.2 11B, 90B Vision", "layers of cross-attention", "llama"},
    MissingType{"llava", "LLaVA 1.5", kSees, "llama"},
    MissingType{"smolvlm", "SmolVLM", kSees, "llama"},
    MissingType{"phi4_multimodal", "Phi-4-multimodal", kSees, "phi3"},
    MissingType{"bert", "BERT", kEncoder, ""},
    MissingType{"roberta", "RoBERTa", kEncoder, ""},
    MissingType{"modernbert", "ModernBERT", kEncoder, ""},
    MissingType{"t5", "T5, FLAN-T5", "an encoder beside the decoder", ""},
};

// The model_type of the whole file: a nested object of config.json has none.
std::string type_of(const io::JsonReader& config) {
  const auto type = config.document().find("model_type");
  return type != config.document().end() && type->is_string() ? type->get<std::string>() : "model";
}

}  // namespace

std::span<const MissingType> missing_types() { return kMissingTypes; }

const MissingType* find_missing_type(std::string_view model_type) {
  const auto found = std::find_if(kMissingTypes.begin(), kMissingTypes.end(),
                                  [&](const auto& type) { return type.model_type == model_type; });
  return found == kMissingTypes.end() ? nullptr : &*found;
}

std::string take_nearest(std::string_view model_type) {
  for (const Family& family : all_families())
    if (family.model_type == model_type)
      return fmt::format("take the nearest that runs, `{}`: {}", model_type, family.models);
  return "take a model of one of these families";
}

void refuse_type(const io::JsonReader& config, const std::string& type,
                 const std::vector<std::string>& there) {
  const MissingType* const known = find_missing_type(type);
  config.fail_unsupported(
      "model_type",
      fmt::format("`{}`{} is not supported{}; there are {}", type,
                  known == nullptr ? "" : fmt::format(" ({})", known->models),
                  known == nullptr ? "" : fmt::format(": it needs {}", known->needs),
                  fmt::join(there, ", ")),
      take_nearest(known == nullptr ? "" : known->nearest));
}

void refuse_form(const io::JsonReader& config, const std::string& key, const std::string& form,
                 const std::string& instead) {
  config.fail_unsupported(key, fmt::format("`{}` with {} is not supported", type_of(config), form),
                          instead);
}

}  // namespace convoy::families
