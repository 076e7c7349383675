// SPDX-License-Identifier: Apache-2.0
#include "convoy/library/internal/module_tree.h"

#include <algorithm>
#include <map>

#include "convoy/core/base/error.h"
#include "convoy/machine/device/refillable_tensor.h"
#include "convoy/train/parallel/gradient_hooks.h"

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
      tree.units.push_back({.name = prefix, .core = core, .parent = unit});
      unit = tree.units.size() - 1;
    }
    for (const auto& item : module.named_parameters(/*recurse=*/false))
      if (item.value().defined()) list({joined(prefix, item.key()), item.value()}, unit);
    for (const auto& item : module.named_buffers(/*recurse=*/false))
      if (item.value().defined() && unit_of_.emplace(identity(item.value()), unit).second)
        tree.buffers.push_back({joined(prefix, item.key()), item.value()});
    for (const auto& child : module.named_children())
      visit(*child.value(), core != nullptr ? prefix : joined(prefix, child.key()), unit);
  }

  void list(nn::NamedTensor parameter, size_t unit) {
    const auto [known, is_new] = unit_of_.emplace(identity(parameter.value), unit);
    if (is_new) {
      in_order.push_back(parameter);
      tree.units[unit].parameters.push_back(std::move(parameter));
      return;
    }
    const size_t shared = innermost_of_both(known->second, unit);
    if (shared == known->second) return;
    std::vector<nn::NamedTensor>& before = tree.units[known->second].parameters;
    const auto moved = std::find_if(before.begin(), before.end(), [&](const nn::NamedTensor& each) {
      return each.value.is_same(parameter.value);
    });
    if (moved == before.end()) return;  // not found: a buffer
    tree.units[shared].parameters.push_back(std::move(*moved));
    before.erase(moved);
    known->second = shared;
  }

  // The innermost unit that contains both units. A unit has a larger number than the unit around
  // it.
  size_t innermost_of_both(size_t one, size_t other) const {
    while (one != other) {
      size_t& later = one > other ? one : other;
      later = tree.units[later].parent;
    }
    return one;
  }

  static const void* identity(const at::Tensor& tensor) { return tensor.unsafeGetTensorImpl(); }

  std::map<const void*, size_t> unit_of_;
};

}  // namespace

ModuleTree tree_of(torch::nn::Module& module) { return std::move(Walk(module).tree); }

std::vector<nn::NamedTensor> parameters_of(torch::nn::Module& module) {
  return std::move(Walk(module).in_order);
}

void check_all_taken(torch::nn::Module& module) {
  for (const nn::NamedTensor& parameter : parameters_of(module))
    if (parameter.value.requires_grad() && !parallel::gives_gradient_away(parameter.value))
      throw ConfigError(
          fmt::format(
              "{} requires grad, and did not or was not there when the module was wrapped: its "
              "gradient would stay on this rank",
              parameter.name),
          {.hint = "wrap the module anew after such a change"});
}

void check_usable(const std::vector<nn::NamedTensor>& tensors, at::Device device) {
  for (const nn::NamedTensor& tensor : tensors) {
    if (tensor.value.device() != device)
      throw ConfigError(fmt::format("{} lies on {}, but the process group works on {}", tensor.name,
                                    tensor.value.device().str(), device.str()),
                        {.hint = "call module->to(group->device()) first"});
    if (device::is_withheld(tensor.value))
      throw ConfigError(fmt::format("{} is sharded already", tensor.name),
                        {.hint = "a module has one wrapper, made of plain modules"});
    if (parallel::gives_gradient_away(tensor.value))
      throw ConfigError(
          fmt::format("{} is in a DistributedDataParallel or FullyShardedDataParallel already",
                      tensor.name),
          {.hint = "a module has one wrapper, made of plain modules"});
  }
}

}  // namespace convoy::detail
