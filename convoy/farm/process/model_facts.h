// SPDX-License-Identifier: Apache-2.0
//
// Facts about a model that processing needs before it is loaded: its identity, its chat template
// and its memory. Reads the folder's small files and the headers of the weights. Does not use
// LibTorch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "convoy/core/settings/sampling_choice.h"
#include "convoy/data/text/chat_template.h"
#include "convoy/farm/process/pipeline/pipeline_plan.h"
#include "convoy/generate/scheduler/memory_ladder.h"

namespace convoy::process {

inline constexpr int64_t kKvBlockTokens = 32;  // block size of the engine's KV cache

struct ModelFacts {
  std::string folder;
  std::string identity;  // hash of weights, adapter and template
  std::optional<text::ChatTemplate> chat_template;
  settings::ModelSampling sampling = {};  // sampling settings of generation_config.json
  int64_t parameters = 0;
  // Number of parameters in the linear maps of blocks, which --quantization encodes.
  int64_t block_parameters = 0;
  // For a folder that stores quantised weights: bytes of the codes, and number of parameters that
  // are stored without codes. 0: the weights are not quantised.
  int64_t stored_code_bytes = 0;
  int64_t whole_parameters = 0;
  int64_t layers = 0;               // layers that store keys and values
  int64_t kv_values_per_token = 0;  // number of key and value elements in all layers
  // Elements that a row keeps in all layers with a recurrence: in the model's type, and in fp32.
  int64_t tail_values_per_row = 0;
  int64_t state_values_per_row = 0;
  int64_t positions = 0;      // length of the longest text, in tokens
  int64_t window_tokens = 0;  // smallest attention window of any layer; 0 = no layer has a window

  // The memory that one engine needs. It computes in `bytes_per_value` bytes: 2 for bf16, 4 for
  // fp32. `model` sets how its weights are stored.
  scheduler::MemoryNeeds memory_needs(int64_t bytes_per_value,
                                      const settings::ProcessModelSettings& model) const;
};

// Throws ConfigError if no model is named, and DataError.
ModelFacts read_model_facts(const settings::ProcessModelSettings& model);

// Facts about a model behind servers: only its name is known, and its sampling settings if `folder`
// is a folder of this machine.
ModelFacts facts_of_served_model(const std::string& name, const std::string& folder);

// Reads generation_config.json of `folder`; returns no settings if there is none. Throws DataError.
settings::ModelSampling sampling_of_folder(const std::string& folder);

// Decides the settings that depend on the model: prompts.chat and prompts.opens_think. Throws
// ConfigError if chat is on and there is no template.
void settle_prompts(settings::ProcessSettings& settings, const ModelFacts& model);

// The text of a prompt that the model reads, without the tokenizer's BOS. For servers it is the
// messages, which the server puts through its own template.
std::string rendered_prompt(const Prompt& prompt, const settings::ProcessModelSettings& model,
                            const ModelFacts& facts);

}  // namespace convoy::process
