// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/nn/recompute_in_backward.h"

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

}  // namespace

at::Tensor recompute_in_backward(const at::Tensor& x, TensorFunction function,
                                 const std::shared_ptr<InputsOnHost>& on_host) {
  // Requires grad, so that the output does even where x does not (the first block of a model whose
  // embedding is frozen).
  const at::Tensor anchor = at::empty({0}, x.options()).requires_grad_(true);
  const at::NoGradGuard no_grad;
  const size_t number = on_host ? on_host->keep(x) : 0;
  const at::Tensor y = function(x);
  return kernels::with_backward(
      y,
      {.op = "recompute",
       .inputs = {x, anchor},
       .saved = {on_host ? at::Tensor() : x},
       .gradients = [function = std::move(function), x_requires_grad = x.requires_grad(), on_host,
                     number](const at::Tensor& grad, const std::vector<at::Tensor>& saved,
                             const std::vector<bool>&) {
         const at::Tensor again = on_host ? on_host->take(number) : saved[0];
         return run_again(function, again, grad, x_requires_grad);
       }});
}

}  // namespace convoy::nn
