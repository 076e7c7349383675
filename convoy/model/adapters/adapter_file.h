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
  // For `model`, whose family and heads a GGUF file needs. Throws DataError.
  static AdapterFile open(const std::filesystem::path& adapter, nn::CausalLm& model);
  // Throws DataError where no adapter lies: before a model is read for it.
  static void require(const std::filesystem::path& adapter);

  const LoraConfig& config() const { return config_; }
  // In adapter_config.json where the adapter is a folder.
  const std::filesystem::path& config_path() const { return config_path_; }
  const std::filesystem::path& path() const { return path_; }  // the file of the tensors
  bool is_gguf() const { return !file_; }

  // By PEFT's names. Valid as long as this.
  const std::vector<io::TensorView>& tensors() const { return file_ ? file_->tensors() : views_; }
  const io::TensorView* find(const std::string& name) const;            // nullptr when absent
  const io::TensorView& require_tensor(const std::string& name) const;  // throws DataError

 private:
  AdapterFile() = default;

  LoraConfig config_;
  std::filesystem::path config_path_;
  std::filesystem::path path_;
  std::optional<io::SafetensorsFile> file_;  // none: the values of a GGUF file, in memory
  std::vector<nn::NamedTensor> values_;
  std::vector<io::TensorView> views_;
};

}  // namespace convoy::adapters
