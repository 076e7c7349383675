// SPDX-License-Identifier: Apache-2.0
//
// Ops whose backward is written by hand, as nodes of LibTorch's graph. One class of node for all of
// them: torch::autograd::Function is a template that takes every unit with an op ten seconds to
// compile, and copies its arguments into a dictionary at every call.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <initializer_list>
#include <vector>

namespace convoy::kernels {

// Would autograd record an op over these inputs?
bool records_gradient(std::initializer_list<at::Tensor> inputs);

struct Backward {
  const char* op;                  // named in errors
  std::vector<at::Tensor> inputs;  // undefined ones are allowed
  std::vector<at::Tensor> saved;   // kept until backward has run; the output may be among them
  // Gradients of `inputs` in their order; those not requested may be undefined. `grad` is
  // contiguous. Called without recording, on the thread of the inputs' device.
  std::function<std::vector<at::Tensor>(const at::Tensor& grad,
                                        const std::vector<at::Tensor>& saved,
                                        const std::vector<bool>& wanted)>
      gradients;
};

// `output`, which was computed without recording, as the result of an op with this backward.
// Differentiable once: a second derivative throws StateError.
at::Tensor with_backward(const at::Tensor& output, Backward backward);

}  // namespace convoy::kernels
