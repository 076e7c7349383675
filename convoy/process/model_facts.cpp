// SPDX-License-Identifier: Apache-2.0
#include "convoy/process/model_facts.h"

#include <fmt/format.h>

#include <filesystem>

#include "convoy/base/error.h"
#include "convoy/base/hash.h"
#include "convoy/io/model_fingerprint.h"
#include "convoy/process/think_text.h"
#include "convoy/settings/template_kwargs.h"

namespace convoy::process {
namespace {

constexpr int64_t kMost = int64_t{1} << 31;

std::string adapter_fingerprint(const std::string& adapter) {
  if (adapter.empty()) return {};
  const io::ModelFolder folder = io::ModelFolder::open_without_config(adapter);
  Sha256 hash;
  for (const char* name : {"adapter_config.json", "adapter_model.safetensors"})
    hash.update(sha256_hex_of_file(folder.require(name)));
  return hash.hex();
}

void read_shape(const io::ModelFolder& folder, ModelFacts& facts) {
  const io::JsonReader& config = folder.config();
  facts.layers = config.int_or("num_hidden_layers", 0, 0, kMost);
  const int64_t heads = config.int_or("num_attention_heads", 0, 0, kMost);
  const int64_t kv_heads = config.int_or("num_key_value_heads", heads, 0, kMost);
  const int64_t hidden = config.int_or("hidden_size", 0, 0, kMost);
  const int64_t head = config.int_or("head_dim", heads == 0 ? 0 : hidden / heads, 0, kMost);
  facts.kv_values_per_token = 2 * facts.layers * kv_heads * head;
  facts.positions = config.int_or("max_position_embeddings", 0, 0, kMost);
  facts.window_tokens = config.int_or("sliding_window", 0, 0, kMost);
  const io::ModelWeights weights(folder);
  for (const std::string& name : weights.names())
    facts.parameters += weights.require(name).num_elements();
}

}  // namespace

ModelFacts read_model_facts(const settings::ProcessModelSettings& model) {
  if (model.name.empty())
    throw ConfigError(
        "no model is named: Convoy has none of its own and takes none unasked",
        {.key = "model.name",
         .hint = "--model FOLDER, or a hub id that lies in the local cache, such as --model "
                 "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B"});
  const io::ModelFolder folder = io::ModelFolder::open(model.name, model.revision);
  ModelFacts facts;
  facts.folder = folder.path().string();
  facts.chat_template = text::ChatTemplate::load(folder.path(), model.template_path);
  facts.identity =
      fmt::format("{} {} {}", io::model_fingerprint(folder), adapter_fingerprint(model.adapter),
                  facts.chat_template ? facts.chat_template->content_hash() : "");
  read_shape(folder, facts);
  return facts;
}

serving::MemoryNeeds ModelFacts::memory_needs(int64_t bytes_per_value) const {
  constexpr int64_t kProgramBytes = int64_t{400} << 20;
  // One scale in two bytes for 128 int8, or for 32 int4 values.
  return {.program_bytes = kProgramBytes,
          .weight_bytes = parameters * bytes_per_value,
          .int8_weight_bytes = parameters + parameters / 64,
          .int4_weight_bytes = parameters / 2 + parameters / 16,
          .kv_bytes_per_token = kv_values_per_token * bytes_per_value,
          .int8_kv_bytes_per_token = kv_values_per_token + kv_values_per_token / 16,
          .step_bytes_per_token = layers == 0 ? 0 : 64 * kv_values_per_token / layers,
          .block_tokens = kKvBlockTokens};
}

void settle_prompts(settings::ProcessSettings& settings, const ModelFacts& model) {
  settings::PromptSettings& prompts = settings.prompts;
  if (prompts.chat == "auto") prompts.chat = model.chat_template ? "on" : "off";
  if (prompts.chat == "on" && !model.chat_template)
    throw ConfigError(fmt::format("prompts.chat is on, but {} has no chat template", model.folder),
                      {.key = "prompts.chat", .hint = "--plain, or model.template_path=FILE"});
  if (prompts.chat == "off" && !prompts.system.empty())
    throw ConfigError("prompts.system has no effect on plain prompts",
                      {.key = "prompts.system", .hint = "write it into the prompts' files"});
  if (prompts.opens_think != "auto") return;
  prompts.opens_think = "no";
  if (prompts.chat != "on") return;
  const Prompt probe{.messages = {{{"role", "user"}, {"content", "1 + 1 = ?"}}}};
  if (opens_think(rendered_prompt(probe, settings.model, model))) prompts.opens_think = "yes";
}

std::string rendered_prompt(const Prompt& prompt, const settings::ProcessModelSettings& model,
                            const ModelFacts& facts) {
  if (prompt.messages.is_null()) return prompt.text;
  const nlohmann::ordered_json variables =
      settings::template_kwargs(model.template_kwargs, "model.template_kwargs");
  return facts.chat_template->render(prompt.messages, variables, true).text;
}

}  // namespace convoy::process
