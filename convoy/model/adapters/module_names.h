// SPDX-License-Identifier: Apache-2.0
//
// How an adapter's files name the modules of a text model: as it does itself, or as a larger model
// does that holds it beside a vision tower.
#pragma once

#include <string>
#include <vector>

#include "convoy/core/io/safetensors.h"

namespace convoy::adapters {

inline constexpr const char* kPeftPrefix = "base_model.model.";

// In the names of modules and of their parameters alike.
struct ModuleNames {
  std::string body = "model";  // "model" of "model.layers.0.mlp.up_proj"
  std::string head = "lm_head";

  // "model.layers.0..." -> "model.language_model.layers.0...", and back. Other names stay.
  std::string of(const std::string& own) const;
  std::string own(const std::string& name) const;
  // Is it the text model's? A tower's module may begin with `body` too.
  bool hold(const std::string& name) const;
  bool operator==(const ModuleNames&) const = default;
};

// As PEFT names them in the whole model: `text_module` is nn::CausalLm's.
ModuleNames names_in_whole(const std::string& text_module);

// As PEFT's tensors are named: in the whole model of transformers 4.52 and later, in the whole one
// of earlier ones, or in the text model alone, as Convoy 0.2 and files in GGUF name them.
ModuleNames names_in_file(const std::vector<io::TensorView>& tensors);

}  // namespace convoy::adapters
