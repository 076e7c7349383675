// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/architecture/families/family.h"

#include <array>
#include <limits>
#include <set>

#include "convoy/model/architecture/families/gemma/gemma.h"
#include "convoy/model/architecture/families/gemma2/gemma2.h"
#include "convoy/model/architecture/families/gemma3/gemma3.h"
#include "convoy/model/architecture/families/gemma4/gemma4.h"
#include "convoy/model/architecture/families/glm/glm.h"
#include "convoy/model/architecture/families/granite/granite.h"
#include "convoy/model/architecture/families/llama/llama.h"
#include "convoy/model/architecture/families/ministral3/ministral3.h"
#include "convoy/model/architecture/families/missing_forms.h"
#include "convoy/model/architecture/families/mistral/mistral.h"
#include "convoy/model/architecture/families/muse_glimmer/muse_glimmer.h"
#include "convoy/model/architecture/families/olmo2/olmo2.h"
#include "convoy/model/architecture/families/olmo3/olmo3.h"
#include "convoy/model/architecture/families/phi3/phi3.h"
#include "convoy/model/architecture/families/qwen2/qwen2.h"
#include "convoy/model/architecture/families/qwen3/qwen3.h"
#include "convoy/model/architecture/families/qwen3_5/qwen3_5.h"
#include "convoy/model/architecture/families/seed_oss/seed_oss.h"
#include "convoy/model/architecture/families/smollm3/smollm3.h"

namespace convoy::families {
namespace {

constexpr std::array kFamilies{
    Family{"llama", "LlamaForCausalLM", read_llama_spec, TextModel::Whole,
           "Llama 2, 3, 3.1, 3.2 (text), 3.3; SmolLM2, TinyLlama"},
    Family{"mistral", "MistralForCausalLM", read_mistral_spec, TextModel::Whole,
           "Mistral 7B v0.1 to v0.3, Nemo, Small 2409 and 2501"},
    Family{"qwen2", "Qwen2ForCausalLM", read_qwen2_spec, TextModel::Whole,
           "Qwen2, Qwen2.5; DeepSeek-R1-Distill-Qwen"},
    Family{"qwen3", "Qwen3ForCausalLM", read_qwen3_spec, TextModel::Whole, "Qwen3 (dense)"},
    Family{"gemma", "GemmaForCausalLM", read_gemma_spec, TextModel::Whole, "Gemma 2B, 7B"},
    Family{"gemma2", "Gemma2ForCausalLM", read_gemma2_spec, TextModel::Whole,
           "Gemma 2 2B, 9B, 27B"},
    Family{"qwen3_5_text", "Qwen3_5ForCausalLM", read_qwen3_5_spec, TextModel::Whole,
           "Qwen3.5, Qwen3.6 (dense, text alone)"},
    Family{"qwen3_5", "Qwen3_5ForCausalLM", read_nested_qwen3_5_spec, TextModel::Nested,
           "Qwen3.5, Qwen3.6 (dense; their language model)", "qwen3_5_text"},
    Family{"gemma3_text", "Gemma3ForCausalLM", read_gemma3_spec, TextModel::Whole,
           "Gemma 3 270M, 1B"},
    Family{"gemma3", "Gemma3ForCausalLM", read_nested_gemma3_spec, TextModel::Nested,
           "Gemma 3 4B, 12B, 27B (their language model)", "gemma3_text"},
    Family{"gemma4_text", "Gemma4ForCausalLM", read_gemma4_spec, TextModel::Whole,
           "Gemma 4 E2B, E4B, 31B (text alone)"},
    Family{"gemma4", "Gemma4ForCausalLM", read_nested_gemma4_spec, TextModel::Nested,
           "Gemma 4 E2B, E4B, 31B (their language model)", "gemma4_text"},
    Family{"gemma4_unified_text", "Gemma4UnifiedForCausalLM", read_gemma4_unified_spec,
           TextModel::Whole, "Gemma 4 12B (text alone)"},
    Family{"gemma4_unified", "Gemma4UnifiedForCausalLM", read_nested_gemma4_unified_spec,
           TextModel::Nested, "Gemma 4 12B (its language model)", "gemma4_unified_text"},
    Family{"smollm3", "SmolLM3ForCausalLM", read_smollm3_spec, TextModel::Whole, "SmolLM3 3B"},
    Family{"granite", "GraniteForCausalLM", read_granite_spec, TextModel::Whole,
           "Granite 3.0 to 3.3 (dense)"},
    Family{"seed_oss", "SeedOssForCausalLM", read_seed_oss_spec, TextModel::Whole, "Seed-OSS 36B"},
    Family{"olmo2", "Olmo2ForCausalLM", read_olmo2_spec, TextModel::Whole,
           "OLMo 2 1B, 7B, 13B, 32B"},
    Family{"olmo3", "Olmo3ForCausalLM", read_olmo3_spec, TextModel::Whole, "OLMo 3 7B, 32B"},
    Family{"phi3", "Phi3ForCausalLM", read_phi3_spec, TextModel::Whole,
           "Phi-3 and 3.5 mini, medium; Phi-4, Phi-4-mini, their reasoning models"},
    Family{"glm", "GlmForCausalLM", read_glm_spec, TextModel::Whole, "GLM-4 9B (-hf)"},
    Family{"glm4", "Glm4ForCausalLM", read_glm4_spec, TextModel::Whole,
           "GLM-4-0414 9B, 32B; GLM-Z1"},
    Family{"ministral3", "Ministral3ForCausalLM", read_ministral3_spec, TextModel::Whole,
           "Ministral 3 (text alone)"},
    Family{"mistral3", "MistralForCausalLM", read_nested_mistral3_spec, TextModel::Nested,
           "Mistral Small 3.1, 3.2; Ministral 3 3B, 8B, 14B (their language model)", "mistral"},
    // transformers has no class of the text model with its head.
    Family{"muse_glimmer_text", "MuseGlimmerTextModel", read_muse_glimmer_spec, TextModel::Whole,
           "Muse Glimmer 30B (text alone)"},
    Family{"muse_glimmer", "MuseGlimmerTextModel", read_nested_muse_glimmer_spec, TextModel::Nested,
           "Muse Glimmer 30B (its language model)", "muse_glimmer_text"},
};

}  // namespace

std::span<const Family> all_families() { return kFamilies; }

std::vector<std::string> supported_model_types() {
  std::vector<std::string> types;
  for (const Family& family : kFamilies) types.emplace_back(family.model_type);
  return types;
}

namespace {

const Family& family_of(const io::JsonReader& config, const std::string& type) {
  for (const Family& family : kFamilies) {
    if (type == family.model_type) return family;
  }
  refuse_type(config, type, supported_model_types());
}

const Family& family_of(const io::JsonReader& config) {
  return family_of(config, config.require_string("model_type"));
}

}  // namespace

const Family& family_of(const io::ModelFolder& folder) { return family_of(folder.config()); }

const Family& text_family_of(const io::ModelFolder& folder) {
  const Family& family = family_of(folder);
  if (family.layout == TextModel::Whole) return family;
  const io::JsonReader text = folder.config().require_object("text_config");
  return family_of(text, text.string_or("model_type", family.usual_text));
}

architecture::DecoderSpec read_decoder_spec(const io::ModelFolder& folder) {
  return read_decoder_spec(folder.config());
}

architecture::DecoderSpec read_decoder_spec(const io::JsonReader& config) {
  return family_of(config).read_spec(config);
}

std::vector<int32_t> end_token_ids(const io::ModelFolder& folder) {
  constexpr int64_t kMostId = std::numeric_limits<int32_t>::max();
  std::set<int32_t> ids;
  const auto add = [&](const io::JsonReader& reader) {
    for (const int64_t id : reader.ints_or_empty("eos_token_id", 0, kMostId))
      ids.insert(static_cast<int32_t>(id));
  };
  add(folder.config());
  if (const auto text = folder.config().optional_object("text_config")) add(*text);
  if (folder.generation_config()) add(*folder.generation_config());
  return {ids.begin(), ids.end()};
}

}  // namespace convoy::families
