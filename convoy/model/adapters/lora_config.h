// SPDX-License-Identifier: Apache-2.0
//
// The settings of a LoRA adapter: ranks, scaling and targets, as in PEFT's adapter_config.json
// (PEFT 0.20). Reads and writes that file; a setting of PEFT 0.20 that changes the maths in a way
// Convoy does not compute is refused by name. Keys that PEFT 0.20 does not have are ignored.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "convoy/core/io/json_reader.h"
#include "convoy/core/settings/train_settings.h"

namespace convoy::adapters {

struct LoraConfig {
  int64_t r = 8;
  double alpha = 8;
  double dropout = 0;
  bool use_rslora = false;
  bool use_dora = false;
  bool all_linear = true;  // every linear inside the blocks, but not the output head
  // At most one of names and pattern is set: endings of module names at a dot, or a regular
  // expression (RE2) over whole names.
  std::vector<std::string> target_names;
  std::string target_pattern;
  std::vector<std::string> exclude_names;
  std::string exclude_pattern;
  // The first pattern that matches a module counts.
  config::OrderedMap<int64_t> rank_pattern;
  config::OrderedMap<double> alpha_pattern;
  std::vector<std::string> modules_to_save;
  bool ensure_weight_tying = false;          // modules_to_save that share a tensor stay tied
  std::vector<int64_t> layers_to_transform;  // empty = all
  std::string base_model;                    // as recorded in the file
  std::string revision;

  // Throws ConfigError on contradictory settings.
  static LoraConfig from_settings(const settings::LoraSettings& settings);
  // Reads adapter_config.json. Absent keys have PEFT's defaults, and a null counts as absent.
  // Exceptions: peft_type and target_modules are required, and null is refused for r, lora_alpha
  // and lora_dropout, as in PEFT. Throws DataError naming file and key.
  static LoraConfig from_peft_json(const io::JsonReader& json);
  // adapter_config.json as PEFT 0.20 writes it: indent 2, sorted keys, no trailing newline.
  // `targets`: the modules that carry LoRA, by the ends of their names.
  std::string to_peft_json(const std::vector<std::string>& targets) const;

  // Does the module of this full name ("model.layers.0.self_attn.q_proj") carry LoRA? The functions
  // that match patterns throw ConfigError naming the key of a pattern that is no regular
  // expression.
  bool targets(const std::string& module_name) const;
  // The number of the layer that the module lies in; none outside the layers.
  static std::optional<int64_t> layer_of(const std::string& module_name);
  // Is the module, or one that it lies in, trained whole? PEFT takes every module whose name ends
  // with one of modules_to_save, at a dot or not.
  bool saves_whole(const std::string& module_name) const;
  // Does a name of modules_to_save choose the module, or one that it lies in?
  static bool saves(const std::string& ending, const std::string& module_name);
  // Names and patterns of exclude_modules, rank_pattern and alpha_pattern that match nothing:
  // "rank_pattern `q_porj`". `modules`: all modules of the model, of which `adapted` carry LoRA.
  struct Unmatched {
    const char* key;
    std::string pattern;
  };
  std::vector<Unmatched> unmatched(const std::vector<std::string>& modules,
                                   const std::vector<std::string>& adapted) const;
  int64_t rank_of(const std::string& module_name) const;
  double alpha_of(const std::string& module_name) const;
  // alpha/r, or alpha/sqrt(r) with rsLoRA.
  double scaling_of(const std::string& module_name) const;
};

}  // namespace convoy::adapters
