// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/model_facts.h"

#include <fmt/format.h>

#include <filesystem>

#include "convoy/core/base/error.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/io/model_fingerprint.h"
#include "convoy/core/settings/template_kwargs.h"
#include "convoy/farm/process/parsing/think_text.h"
#include "convoy/model/architecture/families/family.h"

namespace convoy::process {
namespace {

// Whether a tensor holds codes of quantised weights, or data that bitsandbytes stores for them:
// scales and tables.
bool is_of_codes(const std::string& name, const io::TensorView& view) {
  return view.dtype == io::Dtype::U8 || view.dtype == io::Dtype::I8 || name.ends_with(".SCB") ||
         name.find(".weight.") != std::string::npos;
}

// Bytes of quantised weights: int8 rows that share a scale, or blocks of 64 weights that share a
// scale.
int64_t encoded_bytes(int64_t parameters, const settings::ProcessModelSettings& model) {
  if (model.quantization == "int8") return parameters + parameters / 256;
  const int64_t blocks = parameters / 64;
  return parameters / 2 + (model.double_quant ? blocks + blocks / 64 : 4 * blocks);
}

void read_shape(const io::ModelFolder& folder, ModelFacts& facts) {
  const architecture::DecoderSpec spec = families::read_decoder_spec(folder);
  facts.layers = spec.num_layers_with(architecture::TokenMixer::Attention);
  const int64_t recurrent = spec.num_layers_with(architecture::TokenMixer::GatedDeltaNet);
  const architecture::DeltaNetSpec& sizes = spec.delta_net;
  facts.tail_values_per_row = recurrent * sizes.conv_channels() * (sizes.conv_width - 1);
  facts.state_values_per_row =
      recurrent * sizes.num_value_heads * sizes.key_head_dim * sizes.value_head_dim;
  facts.positions = spec.max_positions;
  for (const architecture::LayerSpec& layer : spec.layers) {
    if (layer.mixer == architecture::TokenMixer::Attention &&
        layer.keys_of == architecture::kOwnKeys)
      facts.kv_values_per_token += 2 * spec.kv_heads_of(layer) * spec.head_dim_of(layer);
    const int64_t window = layer.sliding_window;
    if (window > 0 && (facts.window_tokens == 0 || window < facts.window_tokens))
      facts.window_tokens = window;
  }
  for (const architecture::ParameterDeclaration& declared :
       architecture::declare_parameters(spec)) {
    int64_t elements = 1;
    for (const int64_t size : declared.shape) elements *= size;
    facts.parameters += elements;
    if (architecture::is_map_of_blocks(declared)) facts.block_parameters += elements;
  }
  const io::ModelWeights weights(folder);
  for (const std::string& name : weights.names()) {
    const io::TensorView view = weights.require(name);
    if (is_of_codes(name, view))
      facts.stored_code_bytes += static_cast<int64_t>(view.bytes.size());
    else
      facts.whole_parameters += view.num_elements();
  }
}

}  // namespace

ModelFacts read_model_facts(const settings::ProcessModelSettings& model) {
  if (model.name.empty())
    throw ConfigError("no model given",
                      {.key = "model.name",
                       .hint = "use --model FOLDER or --model ORG/NAME (already downloaded), or "
                               "--preset process-standard (process-low-memory for little memory), "
                               "which names the model and data set of the processing guide"});
  const io::ModelFolder folder = io::ModelFolder::open(model.name, model.revision);
  ModelFacts facts;
  facts.folder = folder.path().string();
  facts.chat_template = text::ChatTemplate::load(folder.path(), model.template_path);
  facts.identity = fmt::format("{} {} {}", io::model_fingerprint(folder),
                               model.adapter.empty() ? "" : io::adapter_fingerprint(model.adapter),
                               facts.chat_template ? facts.chat_template->content_hash() : "");
  if (const auto& config = folder.generation_config())
    facts.sampling = settings::read_model_sampling(config->value(), config->place());
  read_shape(folder, facts);
  return facts;
}

ModelFacts facts_of_served_model(const std::string& name, const std::string& folder) {
  return {.folder = name,
          .identity = "served as " + name,
          .chat_template = {},
          .sampling = sampling_of_folder(folder)};
}

settings::ModelSampling sampling_of_folder(const std::string& folder) {
  const std::filesystem::path file = std::filesystem::path(folder) / "generation_config.json";
  if (folder.empty() || !std::filesystem::is_regular_file(file)) return {};
  return settings::read_model_sampling(io::read_json_file(file), file.string());
}

scheduler::MemoryNeeds ModelFacts::memory_needs(int64_t bytes_per_value,
                                                const settings::ProcessModelSettings& model) const {
  constexpr int64_t kProgramBytes = int64_t{400} << 20;
  constexpr int64_t kStateBytes = 4;
  // The cache has one scale of two bytes per 128 int8 values, or per 32 int4 values.
  return {.program_bytes = kProgramBytes,
          .weight_bytes = model.encodes() ? (parameters - block_parameters) * bytes_per_value +
                                                encoded_bytes(block_parameters, model)
                          : stored_code_bytes > 0
                              ? whole_parameters * bytes_per_value + stored_code_bytes
                              : parameters * bytes_per_value,
          .int8_weight_bytes = parameters + parameters / 64,
          .int4_weight_bytes = parameters / 2 + parameters / 16,
          .kv_bytes_per_token = kv_values_per_token * bytes_per_value,
          .int8_kv_bytes_per_token = kv_values_per_token + kv_values_per_token / 16,
          // A row's own, and one at the end of a prefix.
          .state_bytes_per_row =
              2 * (tail_values_per_row * bytes_per_value + state_values_per_row * kStateBytes),
          .step_bytes_per_token = layers == 0 ? 0 : 64 * kv_values_per_token / layers,
          .block_tokens = kKvBlockTokens};
}

void settle_prompts(settings::ProcessSettings& settings, const ModelFacts& model) {
  settings::PromptSettings& prompts = settings.prompts;
  // Servers have their own chat template, which cannot be read from here.
  const bool has_template = model.chat_template || settings.remote.is_used();
  if (prompts.chat == "auto") prompts.chat = has_template ? "on" : "off";
  if (prompts.chat == "on" && !has_template)
    throw ConfigError(fmt::format("prompts.chat is on, but {} has no chat template", model.folder),
                      {.key = "prompts.chat", .hint = "--plain, or model.template_path=FILE"});
  if (prompts.chat == "off" && !prompts.system.empty())
    throw ConfigError("prompts.system has no effect on plain prompts",
                      {.key = "prompts.system", .hint = "write it into the prompts' files"});
  if (prompts.opens_think != "auto") return;
  prompts.opens_think = "no";
  if (prompts.chat != "on" || !model.chat_template) return;
  const Prompt probe{.messages = {{{"role", "user"}, {"content", "1 + 1 = ?"}}}};
  if (opens_think(rendered_prompt(probe, settings.model, model))) prompts.opens_think = "yes";
}

std::string rendered_prompt(const Prompt& prompt, const settings::ProcessModelSettings& model,
                            const ModelFacts& facts) {
  if (prompt.messages.is_null()) return prompt.text;
  if (!facts.chat_template) return prompt.messages.dump(2);
  const nlohmann::ordered_json variables =
      settings::template_kwargs(model.template_kwargs, "model.template_kwargs");
  return facts.chat_template->render(prompt.messages, variables, true).text;
}

}  // namespace convoy::process
