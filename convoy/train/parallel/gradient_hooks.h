// SPDX-License-Identifier: Apache-2.0
//
// Takes each gradient out of autograd the moment it is final for one backward pass. Runs on the
// thread of backward.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace convoy::parallel {

// `gradient` may be kept or changed: autograd has let go of it.
using GradientReceiver = std::function<void(size_t index, at::Tensor gradient)>;

// The gradients of `tensor` go to a GradientHooks.
bool gives_gradient_away(const at::Tensor& tensor);

class GradientHooks {
 public:
  // Parameters are leaves that require grad. `receiver` outlives this object's hooks.
  GradientHooks(std::vector<at::Tensor> parameters, GradientReceiver receiver);
  ~GradientHooks();  // the parameters are plain again
  GradientHooks(const GradientHooks&) = delete;
  GradientHooks& operator=(const GradientHooks&) = delete;

 private:
  std::vector<at::Tensor> parameters_;
  GradientReceiver receiver_;
};

}  // namespace convoy::parallel
