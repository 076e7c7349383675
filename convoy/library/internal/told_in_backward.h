// SPDX-License-Identifier: Apache-2.0
//
// Calls functions when a backward pass reaches given tensors, and when it has ended. C++ modules
// have no hooks for this.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace convoy::detail {

// Replaces the tensors by others with the same values and memory. When the backward pass has the
// gradients of all of them, `reached` runs once, before the pass goes on to the graph behind them.
// Tensors that do not require grad are not replaced. `makes_graph`: the backward pass is recorded
// itself, for a second backward pass (create_graph).
void tell_in_backward(const std::vector<at::Tensor*>& tensors,
                      std::function<void(bool makes_graph)> reached);

// The number of the backward pass that this thread runs; -1: none.
int backward_pass();
// Call it within a backward pass. `done` runs after the pass has ended without an error, before
// backward() returns. backward() throws what `done` throws.
void at_end_of_backward(std::function<void()> done);

}  // namespace convoy::detail
