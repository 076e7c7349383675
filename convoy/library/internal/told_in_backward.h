// SPDX-License-Identifier: Apache-2.0
//
// Tells when backward comes by and when it is done: C++ modules have no hooks for that.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace convoy::detail {

// The tensors become others of the same values and memory. When backward has the gradients of all
// of them, `reached` runs, once, before the graph behind them. Tensors that do not require grad
// stay as they are. `makes_graph`: backward's own steps are recorded, for a second backward pass
// (create_graph).
void tell_in_backward(const std::vector<at::Tensor*>& tensors,
                      std::function<void(bool makes_graph)> reached);

// The number of the backward pass that this thread is in; -1: none.
int backward_pass();
// From within a backward pass: `done` runs when it has ended well, before backward() returns, which
// throws what `done` throws.
void at_end_of_backward(std::function<void()> done);

}  // namespace convoy::detail
