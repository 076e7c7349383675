// SPDX-License-Identifier: Apache-2.0
//
// Facts about a model that processing needs before it is loaded: its identity, its chat template
// and its memory. Reads the folder's small files and the headers of the weights. Without LibTorch.
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
  settings::ModelSampling sampling = {};  // by generation_config.json
  int64_t parameters = 0;
  // Parameters in linear maps of blocks, which --quantization encodes.
  int64_t block_parameters = 0;
  // For a folder that stores quantised weights: bytes of the codes, and the number of parameters
  // stored beside them. 0: the weights are not quantised.
  int64_t stored_code_bytes = 0;
  int64_t whole_parameters = 0;
  int64_t layers = 0;
  int64_t kv_values_per_token = 0;  // keys and values of all layers
  int64_t positions = 0;            // longest text
  int64_t window_tokens = 0;        // window of the layers that see fewest keys; 0 = all see all

  // Bytes of one engine that computes in `bytes_per_value` bytes: 2 for bf16, 4 for fp32; its
  // weights are held as `model` sets.
  scheduler::MemoryNeeds memory_needs(int64_t bytes_per_value,
                                      const settings::ProcessModelSettings& model) const;
};

// Throws ConfigError where no model is named; DataError.
ModelFacts read_model_facts(const settings::ProcessModelSettings& model);

// Facts about a model behind servers: its name is all that is known of it, and its sampling where
// `folder` is a folder of this machine.
ModelFacts facts_of_served_model(const std::string& name, const std::string& folder);

// Reads generation_config.json of `folder`; nothing where there is none. Throws DataError.
settings::ModelSampling sampling_of_folder(const std::string& folder);

// Settles what the settings leave to the model: prompts.chat and prompts.opens_think. Throws
// ConfigError where chat is on and there is no template.
void settle_prompts(settings::ProcessSettings& settings, const ModelFacts& model);

// A prompt as the model will read it, but for the tokenizer's own BOS; for servers, the messages
// that they put through its template.
std::string rendered_prompt(const Prompt& prompt, const settings::ProcessModelSettings& model,
                            const ModelFacts& facts);

}  // namespace convoy::process
