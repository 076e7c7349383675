// SPDX-License-Identifier: Apache-2.0
//
// Takes each gradient out of autograd the moment it is final for one backward pass. Runs on the
// thread of backward.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace convoy::parallel {

// The receiver may keep or change `gradient`: autograd no longer refers to it.
using GradientReceiver = std::function<void(size_t index, at::Tensor gradient)>;

// True when a GradientHooks takes the gradients of `tensor`.
bool gives_gradient_away(const at::Tensor& tensor);

class GradientHooks {
 public:
  // Parameters are leaves that require grad. `receiver` outlives this object's hooks.
  GradientHooks(std::vector<at::Tensor> parameters, GradientReceiver receiver);
  ~GradientHooks();  // removes the hooks from the parameters
  GradientHooks(const GradientHooks&) = delete;
  GradientHooks& operator=(const GradientHooks&) = delete;

 private:
  std::vector<at::Tensor> parameters_;
  GradientReceiver receiver_;
};

}  // namespace convoy::parallel
