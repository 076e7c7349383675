// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/nn/recompute_in_backward.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <utility>

#include "convoy/model/kernels/ops/autograd.h"

namespace convoy::nn {
namespace {

// Gradients of `inputs`, from the gradients of the function's outputs.
std::vector<at::Tensor> run_again(const TensorsFunction& function, std::vector<at::Tensor> inputs,
                                  const std::vector<bool>& requires_grad,
                                  const std::vector<at::Tensor>& grads) {
  for (size_t at = 0; at < inputs.size(); ++at)
    if (inputs[at].defined()) inputs[at] = inputs[at].detach().requires_grad_(requires_grad[at]);
  const at::AutoGradMode record_graph(true);
  const std::vector<at::Tensor> outputs = function(inputs);
  std::vector<at::Tensor> reached, their_grads;
  for (size_t at = 0; at < outputs.size(); ++at) {
    if (!grads[at].defined() || !outputs[at].requires_grad()) continue;
    reached.push_back(outputs[at]);
    their_grads.push_back(grads[at].contiguous());
  }
  torch::autograd::backward(reached, their_grads);
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& input : inputs)
    gradients.push_back(input.defined() ? input.grad() : at::Tensor());
  return gradients;
}

}  // namespace

std::vector<at::Tensor> recompute_in_backward(const std::vector<at::Tensor>& inputs,
                                              TensorsFunction function,
                                              const std::shared_ptr<InputsOnHost>& on_host) {
  // The anchor requires grad, so that the outputs require grad even where no input does (the first
  // block of a model whose embedding is frozen).
  const at::Tensor anchor = at::empty({0}, inputs[0].options()).requires_grad_(true);
  std::vector<bool> requires_grad;
  for (const at::Tensor& input : inputs)
    requires_grad.push_back(input.defined() && input.requires_grad());
  std::vector<at::Tensor> and_anchor = inputs;
  and_anchor.push_back(anchor);
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> kept = inputs;
  const size_t number = on_host ? on_host->keep(inputs[0]) : 0;
  if (on_host) kept[0] = at::Tensor();
  const std::vector<at::Tensor> outputs = function(inputs);
  return kernels::with_backward(
      outputs, {.op = "recompute",
                .inputs = std::move(and_anchor),
                .saved = std::move(kept),
                .gradients = [function = std::move(function),
                              requires_grad = std::move(requires_grad), on_host, number](
                                 const std::vector<at::Tensor>& grads,
                                 const std::vector<at::Tensor>& saved, const std::vector<bool>&) {
                  std::vector<at::Tensor> again = saved;
                  if (on_host) again[0] = on_host->take(number);
                  std::vector<at::Tensor> gradients =
                      run_again(function, std::move(again), requires_grad, grads);
                  gradients.emplace_back();  // the anchor has none
                  return gradients;
                }});
}

}  // namespace convoy::nn
