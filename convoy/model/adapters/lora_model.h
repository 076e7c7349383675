// SPDX-License-Identifier: Apache-2.0
//
// LoRA over a whole model: attach, list what trains, save and load in PEFT's layout, merge.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "convoy/model/adapters/lora_config.h"
#include "convoy/model/adapters/lora_linear.h"
#include "convoy/model/adapters/module_names.h"
#include "convoy/model/nn/causal_lm.h"

namespace convoy::adapters {

class AdapterFile;

// Does the adapter's file contain an embedding or a head that its configuration does not name? PEFT
// saves them after tokens were added (save_embedding_layers). Throws DataError.
bool brings_embeddings(const std::filesystem::path& adapter_folder);

// The model must outlive this object. Attaching freezes every parameter of the model except
// modules_to_save.
class LoraModel {
 public:
  // A: Kaiming-uniform with a = sqrt(5), a pure function of (seed, module name); B = 0; DoRA's
  // magnitude = |W|. In the text part of a larger model, names and patterns mean modules of the
  // larger model, as in PEFT. Throws ConfigError when nothing matches, or a name or pattern in the
  // config matches no module.
  static LoraModel create(nn::CausalLm& model, LoraConfig config, uint64_t seed);

  // Loads a PEFT adapter folder or a LoRA file in GGUF (adapter_file.h). Throws DataError unless
  // each tensor of the file has a place in the model, and each place has a tensor. Embedding and
  // head that PEFT saved beside the adapter (save_embedding_layers) replace the embedding and head
  // of the model. Modules may be named as in a larger model or as in the text model alone
  // (module_names.h); an adapter that changes other parts of the larger model is refused.
  static LoraModel load(nn::CausalLm& model, const std::filesystem::path& adapter);

  // Everything that trains, under PEFT's file names ("base_model.model....lora_A.weight") for the
  // whole model, in model order.
  const std::vector<nn::NamedTensor>& parameters() const { return parameters_; }
  const LoraConfig& config() const { return config_; }
  // Patterns of a loaded configuration that match no module, which PEFT accepts.
  const std::vector<LoraConfig::Unmatched>& unmatched() const { return unmatched_; }
  // Modules that modules_to_save selects by PEFT's rule, but not at a dot, and that the file lacks:
  // earlier versions of Convoy saved only modules whose name ends with an entry at a dot. These
  // modules keep the model's values and are not trained.
  const std::vector<std::string>& left_to_model() const { return left_to_model_; }
  // Did the loaded file replace an embedding or a head that is not trained? save() would leave it
  // out.
  bool brings_embeddings() const { return brings_embeddings_; }
  struct Adapted {
    nn::Linear* linear = nullptr;
    std::shared_ptr<LoraLinear> lora;
  };
  const std::vector<Adapted>& adapted() const { return adapted_; }
  int64_t num_adapted() const { return static_cast<int64_t>(adapted_.size()); }

  // Writes adapter_config.json and adapter_model.safetensors into `folder`. If this model is the
  // text part of a larger one, each module gets its full name in the larger model, so that no name
  // also matches modules of the other parts. `base_model`: recorded name. Throws IoError.
  void save(const std::filesystem::path& folder, const std::string& base_model) const;
  // The text of adapter_config.json.
  std::string config_text(const std::string& base_model) const;

  // Folds every adapter into its weight (computed in fp32, stored in the weight's dtype) and
  // detaches them.
  void merge();

 private:
  // `names`: the form of the module names in `config`.
  LoraModel(LoraConfig config, ModuleNames names, const nn::CausalLm& model);
  void attach(nn::CausalLm& model);
  std::string name_in_file(const nn::NamedTensor& parameter) const;
  LoraConfig spelled_out() const;
  void leave_unsaved_modules(const AdapterFile& file);
  void take_embeddings(nn::CausalLm& model, const AdapterFile& file,
                       std::set<std::string>& expected);

  LoraConfig config_;
  ModuleNames names_;        // in config_ and in the file that was loaded
  ModuleNames saved_names_;  // in parameters_ and in files that are saved
  std::vector<Adapted> adapted_;
  std::vector<nn::NamedTensor> parameters_;
  std::vector<LoraConfig::Unmatched> unmatched_;
  std::vector<std::string> left_to_model_;
  bool brings_embeddings_ = false;
};

}  // namespace convoy::adapters
