// SPDX-License-Identifier: Apache-2.0
//
// A LoRA file of llama.cpp (general.type `adapter`), which its convert_lora_to_gguf.py writes, as a
// PEFT adapter. Treated as untrusted.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "convoy/model/adapters/lora_config.h"
#include "convoy/model/nn/unit.h"

namespace convoy::adapters {

struct GgufLora {
  LoraConfig config;
  // The tensors under PEFT's names, in fp32 on the CPU, rows in transformers' order.
  std::vector<nn::NamedTensor> tensors;
};

// `model_type` (as in config.json) and `head_dim` are the base model's. Throws DataError for an
// adapter of another base, and for adapters that Convoy does not support: of embeddings, of whole
// norms, activated LoRA.
GgufLora read_gguf_lora(const std::filesystem::path& path, const std::string& model_type,
                        int64_t head_dim);

// Needs no base model. Throws DataError unless the file is a LoRA adapter in GGUF.
void require_gguf_lora(const std::filesystem::path& path);

// Notices about the parts of a GGUF adapter that Convoy ignores, one sentence each. Empty for the
// folder of a PEFT adapter.
std::vector<std::string> gguf_lora_notices(const std::filesystem::path& adapter);

}  // namespace convoy::adapters
