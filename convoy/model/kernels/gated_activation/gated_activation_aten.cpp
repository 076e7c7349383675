// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/gated_activation/gated_activation_ops.h"

namespace convoy::kernels {
namespace {

at::Tensor activate(const at::Tensor& gate, Activation activation) {
  return activation == Activation::Silu ? at::silu(gate) : at::gelu(gate, "tanh");
}

at::Tensor run_forward(const at::Tensor& gate_TF, const at::Tensor& up_TF, Activation activation) {
  return activate(gate_TF.to(at::kFloat), activation)
      .mul_(up_TF.to(at::kFloat))
      .to(gate_TF.scalar_type());
}

GatedActivationGradients run_backward(const at::Tensor& grad_TF, const at::Tensor& gate_TF,
                                      const at::Tensor& up_TF, Activation activation) {
  const at::Tensor grad = grad_TF.to(at::kFloat);
  const at::Tensor gate = gate_TF.to(at::kFloat);
  const at::Tensor grad_activated = grad * up_TF.to(at::kFloat);
  const at::Tensor grad_gate = activation == Activation::Silu
                                   ? at::silu_backward(grad_activated, gate)
                                   : at::gelu_backward(grad_activated, gate, "tanh");
  return {grad_gate.to(gate_TF.scalar_type()),
          activate(gate, activation).mul_(grad).to(up_TF.scalar_type())};
}

}  // namespace

const GatedActivationOps kGatedActivationAten = {run_forward, run_backward};

}  // namespace convoy::kernels
