// SPDX-License-Identifier: Apache-2.0
#include "convoy/library/internal/module_tree.h"

#include <set>

#include "convoy/core/base/error.h"

namespace convoy::detail {
namespace {

std::string joined(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

class Walk {
 public:
  explicit Walk(torch::nn::Module& root) {
    tree.units.push_back({.name = "the rest"});
    visit(root, "", 0);
  }
  ModuleTree tree;
  std::vector<nn::NamedTensor> in_order;

 private:
  void visit(torch::nn::Module& module, const std::string& prefix, size_t unit) {
    auto* const core = dynamic_cast<UnitCore*>(&module);
    if (core != nullptr) {
      unit = tree.units.size();
      tree.units.push_back({.name = prefix, .core = core});
    }
    for (const auto& item : module.named_parameters(/*recurse=*/false)) {
      if (!item.value().defined() || !seen_.insert(item.value().unsafeGetTensorImpl()).second)
        continue;
      in_order.push_back({joined(prefix, item.key()), item.value()});
      tree.units[unit].parameters.push_back(in_order.back());
    }
    for (const auto& item : module.named_buffers(/*recurse=*/false))
      if (item.value().defined() && seen_.insert(item.value().unsafeGetTensorImpl()).second)
        tree.buffers.push_back({joined(prefix, item.key()), item.value()});
    for (const auto& child : module.named_children())
      visit(*child.value(), core != nullptr ? prefix : joined(prefix, child.key()), unit);
  }

  std::set<const void*> seen_;
};

}  // namespace

ModuleTree tree_of(torch::nn::Module& module) { return std::move(Walk(module).tree); }

std::vector<nn::NamedTensor> parameters_of(torch::nn::Module& module) {
  return std::move(Walk(module).in_order);
}

void check_usable(const std::vector<nn::NamedTensor>& tensors, at::Device device) {
  for (const nn::NamedTensor& tensor : tensors) {
    CONVOY_CHECK(
        tensor.value.device() == device, ConfigError,
        "{} lies on {}, but the process group works on {}; call module->to(group->device()) "
        "first",
        tensor.name, tensor.value.device().str(), device.str());
    CONVOY_CHECK(tensor.value.numel() == 0 || tensor.value.storage().nbytes() > 0, ConfigError,
                 "{} is sharded already: a module has one wrapper, made of plain modules",
                 tensor.name);
  }
}

}  // namespace convoy::detail
