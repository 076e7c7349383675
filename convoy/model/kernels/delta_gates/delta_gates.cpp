// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/delta_gates/delta_gates.h"

#include <ATen/ATen.h>

#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/delta_gates/delta_gates_ops.h"
#include "convoy/model/kernels/ops/autograd.h"

namespace convoy::kernels {
namespace {

// Gradients of a, b, a_log and dt_bias; one output may have no gradient.
std::vector<at::Tensor> gradients_of(const std::vector<at::Tensor>& grads,
                                     const std::vector<at::Tensor>& saved) {
  const at::ScalarType dtype = saved[0].scalar_type();
  std::vector<at::Tensor> gradients(4);
  if (grads[0].defined()) {
    const at::Tensor step_TH = saved[0].to(at::kFloat) + saved[3].to(at::kFloat);
    const at::Tensor rate_H = saved[2].to(at::kFloat).exp();
    const at::Tensor grad_TH = -grads[0] * rate_H;  // the gradient of the softplus
    const at::Tensor grad_step_TH = grad_TH * step_TH.sigmoid();
    gradients[0] = grad_step_TH.to(dtype);
    gradients[2] = (grad_TH * at::softplus(step_TH)).sum(0).to(dtype);
    gradients[3] = grad_step_TH.sum(0).to(dtype);
  }
  if (grads[1].defined()) {
    const at::Tensor beta_TH = saved[1].to(at::kFloat).sigmoid();
    gradients[1] = (grads[1] * beta_TH * (1 - beta_TH)).to(dtype);
  }
  return gradients;
}

}  // namespace

DeltaGates delta_gates(const at::Tensor& a_TH, const at::Tensor& b_TH, const at::Tensor& a_log_H,
                       const at::Tensor& dt_bias_H) {
  const int64_t heads = a_TH.size(1);
  CONVOY_INVARIANT(
      a_TH.sizes() == b_TH.sizes() && a_log_H.numel() == heads && dt_bias_H.numel() == heads,
      "delta_gates needs two maps of a token alike, and a parameter of each by head");
  for (const at::Tensor* other : {&b_TH, &a_log_H, &dt_bias_H})
    CONVOY_INVARIANT(other->scalar_type() == a_TH.scalar_type(), "delta_gates needs one dtype");
  const bool records = records_gradient({a_TH, b_TH, a_log_H, dt_bias_H});
  const at::Tensor a = a_TH.contiguous(), b = b_TH.contiguous();
  const at::NoGradGuard no_grad;
  const DeltaGates gates = delta_gates_ops(a.device()).forward(a, b, a_log_H, dt_bias_H);
  if (!records) return gates;
  const std::vector<at::Tensor> recorded = with_backward(
      {gates.log_decay_TH, gates.beta_TH},
      {.op = "delta_gates",
       .inputs = {a, b, a_log_H, dt_bias_H},
       .saved = {a, b, a_log_H, dt_bias_H},
       .gradients = [](const std::vector<at::Tensor>& grads, const std::vector<at::Tensor>& saved,
                       const std::vector<bool>&) { return gradients_of(grads, saved); }});
  return {recorded[0], recorded[1]};
}

}  // namespace convoy::kernels
