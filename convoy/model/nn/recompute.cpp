// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/nn/recompute.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <utility>

#include "convoy/model/kernels/ops/autograd.h"

namespace convoy::nn {
namespace {

std::vector<at::Tensor> run_again(const TensorFunction& function, const at::Tensor& kept_x,
                                  const at::Tensor& grad, bool x_requires_grad) {
  at::Tensor x = kept_x.detach();
  x.requires_grad_(x_requires_grad);
  const at::AutoGradMode record_graph(true);
  torch::autograd::backward({function(x)}, {grad});
  return {x.grad(), at::Tensor()};
}

// `kept`: x, or a copy of it elsewhere.
at::Tensor recompute_keeping(const at::Tensor& x, at::Tensor kept, TensorFunction function) {
  // Requires grad, so that the output does even where x does not (the first block of a model whose
  // embedding is frozen).
  const at::Tensor anchor = at::empty({0}, x.options()).requires_grad_(true);
  const at::NoGradGuard no_grad;
  const at::Tensor y = function(x);
  return kernels::with_backward(
      y, {.op = "recompute",
          .inputs = {x, anchor},
          .saved = {std::move(kept)},
          .gradients = [function = std::move(function), x_requires_grad = x.requires_grad()](
                           const at::Tensor& grad, const std::vector<at::Tensor>& saved,
                           const std::vector<bool>&) {
            const at::Tensor back = saved[0].to(grad.device(), /*non_blocking=*/true);
            return run_again(function, back, grad, x_requires_grad);
          }});
}

at::Tensor copy_on_host(const at::Tensor& x) {
  const auto options = at::TensorOptions().dtype(x.scalar_type()).pinned_memory(true);
  at::Tensor copy = at::empty(x.sizes(), options);
  return copy.copy_(x.detach(), /*non_blocking=*/true);
}

}  // namespace

at::Tensor recompute_in_backward(const at::Tensor& x, TensorFunction function) {
  return recompute_keeping(x, x, std::move(function));
}

at::Tensor recompute_from_host(const at::Tensor& x, TensorFunction function) {
  return recompute_keeping(x, x.is_cpu() ? x : copy_on_host(x), std::move(function));
}

}  // namespace convoy::nn
