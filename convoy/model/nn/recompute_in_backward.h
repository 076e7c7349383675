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

using TensorsFunction = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>;

// Returns function(inputs), keeping only the inputs, of which all but the first may be undefined.
// `function` must give the same values when it runs again: random numbers inside come from keys
// (kernels/dropout), not from a generator. Backward accumulates into the .grad of the leaves that
// `function` uses, in a backward pass of its own: gradients of those leaves cannot be requested
// through at::autograd::grad. Call it only when gradients are needed (grad mode on; an input or a
// leaf inside requires grad). `on_host`: keeps the first input; null: it stays where it is.
std::vector<at::Tensor> recompute_in_backward(
    const std::vector<at::Tensor>& inputs, TensorsFunction function,
    const std::shared_ptr<InputsOnHost>& on_host = nullptr);

}  // namespace convoy::nn
