// SPDX-License-Identifier: Apache-2.0
//
// The parts of an adapter, from the folder of a PEFT adapter or from a LoRA file in GGUF.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "convoy/core/io/safetensors.h"
#include "convoy/model/adapters/lora_config.h"
#include "convoy/model/nn/causal_lm.h"

namespace convoy::adapters {

class AdapterFile {
 public:
  // `model`: gives the family and the head size that a GGUF file is read with. Throws DataError.
  static AdapterFile open(const std::filesystem::path& adapter, nn::CausalLm& model);
  // Throws DataError unless `adapter` is an adapter. Called before a model is loaded for it.
  static void require(const std::filesystem::path& adapter);

  const LoraConfig& config() const { return config_; }
  // The file of the settings: adapter_config.json where the adapter is a folder, else the GGUF
  // file.
  const std::filesystem::path& config_path() const { return config_path_; }
  const std::filesystem::path& path() const { return path_; }  // the file of the tensors
  bool is_gguf() const { return !file_; }

  // The tensors under PEFT's names. The views are valid as long as this object lives.
  const std::vector<io::TensorView>& tensors() const { return file_ ? file_->tensors() : views_; }
  const io::TensorView* find(const std::string& name) const;            // nullptr when absent
  const io::TensorView& require_tensor(const std::string& name) const;  // throws DataError

 private:
  AdapterFile() = default;

  LoraConfig config_;
  std::filesystem::path config_path_;
  std::filesystem::path path_;
  std::optional<io::SafetensorsFile> file_;  // none for a GGUF file, whose values are in memory
  std::vector<nn::NamedTensor> values_;
  std::vector<io::TensorView> views_;
};

}  // namespace convoy::adapters
