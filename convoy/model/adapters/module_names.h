// SPDX-License-Identifier: Apache-2.0
//
// The names of a text model's modules in an adapter's files: the text model's own names, or the
// names in a larger model that contains it beside a vision tower.
#pragma once

#include <string>
#include <vector>

#include "convoy/core/io/safetensors.h"

namespace convoy::adapters {

inline constexpr const char* kPeftPrefix = "base_model.model.";

// The first parts of names, of modules and of parameters alike.
struct ModuleNames {
  std::string body = "model";  // "model" of "model.layers.0.mlp.up_proj"
  std::string head = "lm_head";

  // "model.layers.0..." -> "model.language_model.layers.0...", and back. Other names stay
  // unchanged.
  std::string of(const std::string& own) const;
  std::string own(const std::string& name) const;
  // Is `name` a module of the text model? A module of the vision tower may begin with `body` too.
  bool hold(const std::string& name) const;
  bool operator==(const ModuleNames&) const = default;
};

// The names that PEFT gives the modules in the whole model. `text_module`: CausalLm::text_module().
ModuleNames names_in_whole(const std::string& text_module);

// The names in a file with these tensors: the names of the whole model in transformers 4.52 and
// later, its names in earlier versions, or the text model's own names, which Convoy 0.2 and files
// in GGUF use.
ModuleNames names_in_file(const std::vector<io::TensorView>& tensors);

}  // namespace convoy::adapters
