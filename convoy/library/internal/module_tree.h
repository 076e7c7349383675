// SPDX-License-Identifier: Apache-2.0
//
// The parameters of a module, under the names that they have without any convoy::FsdpUnit.
#pragma once

#include <torch/nn/module.h>

#include <string>
#include <vector>

#include "convoy/library/detail/fsdp_unit.h"
#include "convoy/model/nn/named_tensor.h"

namespace convoy::detail {

// A unit, with its parameters that are in no unit below it.
struct TreeUnit {
  std::string name;
  UnitCore* core = nullptr;  // nullptr: the unit of the parameters that no FsdpUnit wraps
  size_t parent = 0;         // unit around this one; the first unit is its own parent
  std::vector<nn::NamedTensor> parameters = {};
};

struct ModuleTree {
  std::vector<TreeUnit> units;  // first the unit of the parameters that no FsdpUnit wraps
  std::vector<nn::NamedTensor> buffers;
};

// A tensor with several names is listed once, under its first name, in the innermost unit that
// contains all of its uses.
ModuleTree tree_of(torch::nn::Module& module);

// The parameters of all units, in the order of the tree.
std::vector<nn::NamedTensor> parameters_of(torch::nn::Module& module);

// Throws ConfigError naming a parameter that requires grad, but whose gradient no wrapper receives:
// it was frozen or did not exist when the module was wrapped.
void check_all_taken(torch::nn::Module& module);

// Throws ConfigError naming the first tensor that is on another device than `device`, or that
// another wrapper has taken already.
void check_usable(const std::vector<nn::NamedTensor>& tensors, at::Device device);

}  // namespace convoy::detail
