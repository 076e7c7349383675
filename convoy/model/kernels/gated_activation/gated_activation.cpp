// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/gated_activation/gated_activation.h"

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/gated_activation/gated_activation_ops.h"
#include "convoy/model/kernels/ops/autograd.h"

namespace convoy::kernels {
at::Tensor gated_activation(const at::Tensor& gate_TF, const at::Tensor& up_TF,
                            Activation activation) {
  CONVOY_INVARIANT(gate_TF.sizes() == up_TF.sizes() && gate_TF.scalar_type() == up_TF.scalar_type(),
                   "gated_activation needs gate and up alike");
  const bool records = records_gradient({gate_TF, up_TF});
  const auto in_rows = [&](const at::Tensor& x) {
    return !records && x.dim() == 2 && x.stride(1) == 1 ? x : x.contiguous();
  };
  const at::Tensor gate = in_rows(gate_TF);
  const at::Tensor up = in_rows(up_TF);
  const at::NoGradGuard no_grad;
  const at::Tensor y = gated_activation_ops(gate.device()).forward(gate, up, activation);
  if (!records) return y;
  RecomputedOutputs::add(y, {gate, up}, [activation](const std::vector<at::Tensor>& from) {
    return gated_activation_ops(from[0].device()).forward(from[0], from[1], activation);
  });
  return with_backward(
      y, {.op = "gated_activation",
          .inputs = {gate, up},
          .saved = {gate, up},
          .gradients = [activation](const at::Tensor& grad, const std::vector<at::Tensor>& saved,
                                    const std::vector<bool>&) -> std::vector<at::Tensor> {
            GatedActivationGradients gradients =
                gated_activation_ops(grad.device()).backward(grad, saved[0], saved[1], activation);
            return {gradients.gate_TF, gradients.up_TF};
          }});
}

}  // namespace convoy::kernels
