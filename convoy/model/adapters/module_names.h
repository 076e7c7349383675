// SPDX-License-Identifier: Apache-2.0
//
// How an adapter's files name the modules of a text model: by its own names, or by those of a
// larger model that holds it beside a vision tower.
#pragma once

#include <string>
#include <vector>

#include "convoy/core/io/safetensors.h"

namespace convoy::adapters {

inline constexpr const char* kPeftPrefix = "base_model.model.";

// In the names of modules and of their parameters alike.
struct ModuleNames {
  std::string body = "model";  // of "model.layers.0.mlp.up_proj"
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

// Those of PEFT's tensors: of the whole model in transformers 4.52 and later, of the whole one in
// earlier ones, or of the text model alone, as Convoy and files in GGUF name them.
ModuleNames names_in_file(const std::vector<io::TensorView>& tensors);

}  // namespace convoy::adapters
