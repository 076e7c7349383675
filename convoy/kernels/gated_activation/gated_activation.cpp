// SPDX-License-Identifier: Apache-2.0
#include "convoy/kernels/gated_activation/gated_activation.h"

#include "convoy/base/error.h"
#include "convoy/kernels/simd/element.h"
#include "convoy/kernels/simd/simd_kernels.h"

namespace convoy::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor run_forward(const at::Tensor& gate_TF, const at::Tensor& up_TF, Activation activation) {
  at::Tensor y_TF = at::empty(gate_TF.sizes(), gate_TF.options());
  with_element(gate_TF, "gated_activation", [&](auto element) {
    using Element = decltype(element);
    const auto& loops = simd_kernels<Element>();
    const auto loop = activation == Activation::Silu ? loops.gated_silu : loops.gated_gelu_tanh;
    const auto* gate = gate_TF.const_data_ptr<Element>();
    const auto* up = up_TF.const_data_ptr<Element>();
    auto* y = y_TF.mutable_data_ptr<Element>();
    for_rows(gate_TF.numel(), 1, [&](int64_t begin, int64_t end) {
      loop(gate + begin, up + begin, y + begin, end - begin);
    });
  });
  return y_TF;
}

struct GatedActivationFunction : torch::autograd::Function<GatedActivationFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& gate_TF,
                            const at::Tensor& up_TF, Activation activation) {
    context->save_for_backward({gate_TF, up_TF});
    context->saved_data["activation"] = static_cast<int64_t>(activation);
    return run_forward(gate_TF, up_TF, activation);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const variable_list saved = context->get_saved_variables();
    const auto activation = static_cast<Activation>(context->saved_data["activation"].toInt());
    const at::Tensor grad_TF = grads[0].contiguous();
    at::Tensor grad_gate_TF = at::empty(saved[0].sizes(), saved[0].options());
    at::Tensor grad_up_TF = at::empty(saved[1].sizes(), saved[1].options());
    with_element(grad_TF, "gated_activation", [&](auto element) {
      using Element = decltype(element);
      const auto& loops = simd_kernels<Element>();
      const auto loop = activation == Activation::Silu ? loops.gated_silu_backward
                                                       : loops.gated_gelu_tanh_backward;
      const auto* grad = grad_TF.const_data_ptr<Element>();
      const auto* gate = saved[0].const_data_ptr<Element>();
      const auto* up = saved[1].const_data_ptr<Element>();
      auto* grad_gate = grad_gate_TF.mutable_data_ptr<Element>();
      auto* grad_up = grad_up_TF.mutable_data_ptr<Element>();
      for_rows(grad_TF.numel(), 1, [&](int64_t begin, int64_t end) {
        loop(grad + begin, gate + begin, up + begin, grad_gate + begin, grad_up + begin,
             end - begin);
      });
    });
    return {grad_gate_TF, grad_up_TF, at::Tensor()};
  }
};

}  // namespace

at::Tensor gated_activation(const at::Tensor& gate_TF, const at::Tensor& up_TF,
                            Activation activation) {
  CONVOY_INVARIANT(gate_TF.sizes() == up_TF.sizes() && gate_TF.scalar_type() == up_TF.scalar_type(),
                   "gated_activation wants gate and up alike");
  const at::Tensor gate = gate_TF.contiguous();
  const at::Tensor up = up_TF.contiguous();
  if (!records_gradient({gate, up})) return run_forward(gate, up, activation);
  return GatedActivationFunction::apply(gate, up, activation);
}

}  // namespace convoy::kernels
