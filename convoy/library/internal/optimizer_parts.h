// SPDX-License-Identifier: Apache-2.0
//
// The state of any torch::optim optimizer, by the names of its parameters. LibTorch gives this
// state only as an archive, whose keys are addresses.
#pragma once

#include <torch/optim/optimizer.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "convoy/core/io/json_text.h"

namespace convoy::detail {

// The state of one parameter: tensors ("exp_avg"), and numbers ("step").
struct ParameterMemory {
  std::map<std::string, at::Tensor> tensors;
  io::Json numbers = io::Json::object();
};

struct OptimizerMemory {
  std::map<std::string, ParameterMemory> by_name;
  io::Json options = io::Json::array();  // by group: {"lr": 0.1, "betas": [0.9, 0.999]}
};

// Returns the name of a parameter of the optimizer. Throws ConfigError for a parameter that is not
// the model's.
using NameOf = std::function<std::string(const at::Tensor& parameter)>;

OptimizerMemory memory_of(const torch::optim::Optimizer& optimizer, const NameOf& name_of);

// Restores what memory_of() returned. `memory` must have an entry for each parameter that has a
// state, and the options of all groups of the optimizer.
void remember(torch::optim::Optimizer& optimizer, const OptimizerMemory& memory,
              const NameOf& name_of);

}  // namespace convoy::detail
