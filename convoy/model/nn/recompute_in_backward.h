// SPDX-License-Identifier: Apache-2.0
//
// Activation checkpointing (arXiv 1604.06174): run a function without keeping its graph, and run it
// again in backward.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "convoy/model/nn/inputs_on_host.h"

namespace convoy::nn {

using TensorFunction = std::function<at::Tensor(const at::Tensor&)>;
using TensorsFunction = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>;

// function(x), keeping only x. It must give the same values when it runs again: random numbers
// inside come from keys (kernels/dropout), not from a generator. Backward accumulates into the
// .grad of the leaves that `function` uses. It runs a backward pass of its own: gradients of those
// leaves cannot be requested through at::autograd::grad. Call it only when gradients are needed
// (grad mode on; x or a leaf inside requires grad). `on_host`: keeps x; null: x stays where it is.
at::Tensor recompute_in_backward(const at::Tensor& x, TensorFunction function,
                                 const std::shared_ptr<InputsOnHost>& on_host = nullptr);

// The same for several inputs, of which some but the first may be undefined, and several outputs.
// `on_host` keeps the first input alone.
std::vector<at::Tensor> recompute_in_backward(
    const std::vector<at::Tensor>& inputs, TensorsFunction function,
    const std::shared_ptr<InputsOnHost>& on_host = nullptr);

}  // namespace convoy::nn
