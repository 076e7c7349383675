// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/gated_activation/gated_activation_ops.h"

namespace convoy::kernels {
namespace {

at::Tensor activate(const at::Tensor& gate, Activation activation) {
  switch (activation) {
    case Activation::Silu:
      return at::silu(gate);
    case Activation::GeluTanh:
      return at::gelu(gate, "tanh");
    case Activation::Sigmoid:
      break;
  }
  return at::sigmoid(gate);
}

at::Tensor gate_gradient(const at::Tensor& grad_activated, const at::Tensor& gate,
                         Activation activation) {
  switch (activation) {
    case Activation::Silu:
      return at::silu_backward(grad_activated, gate);
    case Activation::GeluTanh:
      return at::gelu_backward(grad_activated, gate, "tanh");
    case Activation::Sigmoid:
      break;
  }
  return at::sigmoid_backward(grad_activated, at::sigmoid(gate));
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
  return {gate_gradient(grad_activated, gate, activation).to(gate_TF.scalar_type()),
          activate(gate, activation).mul_(grad).to(up_TF.scalar_type())};
}

}  // namespace

const GatedActivationOps kGatedActivationAten = {run_forward, run_backward};

}  // namespace convoy::kernels
