// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/adapters/module_names.h"

#include <optional>
#include <string_view>

namespace convoy::adapters {
namespace {

// The rest of a name that begins with `module`, from its dot on.
std::optional<std::string> rest_after(const std::string& name, const std::string& module) {
  if (!name.starts_with(module)) return std::nullopt;
  std::string rest = name.substr(module.size());
  if (!rest.empty() && rest.front() != '.') return std::nullopt;
  return rest;
}

std::string renamed(const std::string& name, const ModuleNames& from, const ModuleNames& to) {
  if (const auto rest = rest_after(name, from.body)) return to.body + *rest;
  if (const auto rest = rest_after(name, from.head)) return to.head + *rest;
  return name;
}

}  // namespace

std::string ModuleNames::of(const std::string& own) const { return renamed(own, {}, *this); }

std::string ModuleNames::own(const std::string& name) const { return renamed(name, *this, {}); }

bool ModuleNames::hold(const std::string& name) const {
  for (const char* module :
       {".embed_tokens", ".embed_tokens_per_layer", ".per_layer_model_projection",
        ".per_layer_projection_norm", ".layers", ".norm"})
    if (rest_after(name, body + module)) return true;
  return rest_after(name, head).has_value();
}

ModuleNames names_in_whole(const std::string& text_module) {
  if (text_module.empty()) return {};
  return {.body = text_module};
}

ModuleNames names_in_file(const std::vector<io::TensorView>& tensors) {
  const ModuleNames wholes[] = {
      {.body = "model.language_model"},
      {.body = "language_model.model", .head = "language_model.lm_head"},
  };
  for (const ModuleNames& names : wholes)
    for (const io::TensorView& tensor : tensors)
      if (tensor.name.starts_with(kPeftPrefix + names.body + ".")) return names;
  return {};
}

}  // namespace convoy::adapters
