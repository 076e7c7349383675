// SPDX-License-Identifier: Apache-2.0
//
// The parameters of a module by the names they have where no convoy::FsdpUnit wraps anything.
#pragma once

#include <torch/nn/module.h>

#include <string>
#include <vector>

#include "convoy/library/detail/fsdp_unit.h"
#include "convoy/model/nn/named_tensor.h"

namespace convoy::detail {

// A part of the tree: the parameters that are in it and in no unit below it.
struct TreeUnit {
  std::string name;
  UnitCore* core = nullptr;  // null: the parameters that no unit wraps
  size_t parent = 0;         // the unit that it lies in; the first one's is itself
  std::vector<nn::NamedTensor> parameters = {};
};

struct ModuleTree {
  std::vector<TreeUnit> units;  // the first: all that no unit wraps; the others in their order
  std::vector<nn::NamedTensor> buffers;
};

// A tensor that has several names is listed once, by the first, in the innermost unit that holds
// all of its uses.
ModuleTree tree_of(torch::nn::Module& module);

// The parameters of all units, in the order of the tree.
std::vector<nn::NamedTensor> parameters_of(torch::nn::Module& module);

// Throws ConfigError naming a parameter that requires grad, whose gradient no wrapper of the ranks
// takes: it was frozen, or was not there, when the module was wrapped.
void check_all_taken(torch::nn::Module& module);

// Throws ConfigError naming the first that lies on another device than the group's, or that a
// wrapper of the ranks has taken already.
void check_usable(const std::vector<nn::NamedTensor>& tensors, at::Device device);

}  // namespace convoy::detail
