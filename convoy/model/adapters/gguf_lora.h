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
  // By PEFT's names, in fp32 on the CPU, rows in transformers' order.
  std::vector<nn::NamedTensor> tensors;
};

// The base: its family as in config.json's model_type, and the size of its heads. Throws DataError
// for another base's file and for what Convoy has not: adapters of embeddings, whole norms,
// activated LoRA.
GgufLora read_gguf_lora(const std::filesystem::path& path, const std::string& model_type,
                        int64_t head_dim);

// Without the base: throws DataError unless the file is a LoRA adapter in GGUF.
void require_gguf_lora(const std::filesystem::path& path);

// Names what the file says and nothing here uses, one sentence each. Empty for a folder.
std::vector<std::string> gguf_lora_notices(const std::filesystem::path& adapter);

}  // namespace convoy::adapters
