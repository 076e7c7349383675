// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/gated_activation/gated_activation_ops.h"
#include "convoy/model/kernels/simd/element.h"
#include "convoy/model/kernels/simd/simd_kernels.h"

namespace convoy::kernels {
namespace {

template <class Element>
auto forward_loop(Activation activation) {
  const auto& loops = simd_kernels<Element>();
  switch (activation) {
    case Activation::Silu:
      return loops.gated_silu;
    case Activation::GeluTanh:
      return loops.gated_gelu_tanh;
    case Activation::Sigmoid:
      break;
  }
  return loops.gated_sigmoid;
}

template <class Element>
auto backward_loop(Activation activation) {
  const auto& loops = simd_kernels<Element>();
  switch (activation) {
    case Activation::Silu:
      return loops.gated_silu_backward;
    case Activation::GeluTanh:
      return loops.gated_gelu_tanh_backward;
    case Activation::Sigmoid:
      break;
  }
  return loops.gated_sigmoid_backward;
}

// The loops run over whole tensors, which are contiguous: on CPUs no product returns strided rows.
at::Tensor run_forward(const at::Tensor& gate_rows, const at::Tensor& up_rows,
                       Activation activation) {
  const at::Tensor gate_TF = gate_rows.contiguous(), up_TF = up_rows.contiguous();
  at::Tensor y_TF = at::empty(gate_TF.sizes(), gate_TF.options());
  with_element(gate_TF, "gated_activation", [&](auto element) {
    using Element = decltype(element);
    const auto loop = forward_loop<Element>(activation);
    const auto* gate = gate_TF.const_data_ptr<Element>();
    const auto* up = up_TF.const_data_ptr<Element>();
    auto* y = y_TF.mutable_data_ptr<Element>();
    for_rows(gate_TF.numel(), 1, [&](int64_t begin, int64_t end) {
      loop(gate + begin, up + begin, y + begin, end - begin);
    });
  });
  return y_TF;
}

GatedActivationGradients run_backward(const at::Tensor& grad_TF, const at::Tensor& gate_TF,
                                      const at::Tensor& up_TF, Activation activation) {
  GatedActivationGradients gradients{at::empty(gate_TF.sizes(), gate_TF.options()),
                                     at::empty(up_TF.sizes(), up_TF.options())};
  with_element(grad_TF, "gated_activation", [&](auto element) {
    using Element = decltype(element);
    const auto loop = backward_loop<Element>(activation);
    const auto* grad = grad_TF.const_data_ptr<Element>();
    const auto* gate = gate_TF.const_data_ptr<Element>();
    const auto* up = up_TF.const_data_ptr<Element>();
    auto* grad_gate = gradients.gate_TF.mutable_data_ptr<Element>();
    auto* grad_up = gradients.up_TF.mutable_data_ptr<Element>();
    for_rows(grad_TF.numel(), 1, [&](int64_t begin, int64_t end) {
      loop(grad + begin, gate + begin, up + begin, grad_gate + begin, grad_up + begin, end - begin);
    });
  });
  return gradients;
}

}  // namespace

const GatedActivationOps kGatedActivationCpu = {run_forward, run_backward};

}  // namespace convoy::kernels
