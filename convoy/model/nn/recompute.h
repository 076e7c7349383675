// SPDX-License-Identifier: Apache-2.0
//
// Activation checkpointing (arXiv 1604.06174): run a function without keeping its graph, and run it
// again in backward.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace convoy::nn {

using TensorFunction = std::function<at::Tensor(const at::Tensor&)>;

// function(x), keeping only x. It must give the same values when it runs again: random numbers
// inside come from keys (kernels/dropout), not from a generator. Backward accumulates into the
// .grad of the leaves that `function` uses. It runs a backward pass of its own: gradients of those
// leaves cannot be requested through at::autograd::grad. Call it only when gradients are needed
// (grad mode on; x or a leaf inside requires grad).
at::Tensor recompute_in_backward(const at::Tensor& x, TensorFunction function);
// The same, but x waits in the host's memory (pinned). Async: copies are queued on the current
// stream. An x on the CPU stays there.
at::Tensor recompute_from_host(const at::Tensor& x, TensorFunction function);

}  // namespace convoy::nn
