// SPDX-License-Identifier: Apache-2.0
#include "convoy/kernels/frozen_linear/frozen_linear.h"

#include "convoy/base/error.h"
#include "convoy/kernels/ops/autograd.h"
#include "convoy/kernels/ops/op_table.h"

namespace convoy::kernels {
FrozenLinear::FrozenLinear(const at::Tensor& weight_OI, const at::Tensor& bias_O) {
  CONVOY_INVARIANT(weight_OI.dim() == 2 && weight_OI.is_contiguous(),
                   "frozen_linear wants a contiguous [O, I]");
  CONVOY_INVARIANT(
      weight_OI.scalar_type() == at::kFloat || weight_OI.scalar_type() == at::kBFloat16,
      "frozen_linear wants fp32 or bf16, found {}", c10::toString(weight_OI.scalar_type()));
  const at::NoGradGuard no_grad;
  packed_ = op_table(weight_OI).frozen_linear.pack(
      weight_OI.detach(), bias_O.defined() ? bias_O.detach() : at::Tensor());
}

at::Tensor FrozenLinear::forward(const at::Tensor& x) const {
  const at::Tensor rows = x.contiguous();
  const bool records = records_gradient({rows});
  const at::NoGradGuard no_grad;
  const at::Tensor y = packed_->forward(rows);
  if (!records) return y;
  return with_backward(
      y, {.op = "frozen_linear",
          .inputs = {rows},
          .saved = {},
          .gradients = [packed = packed_](const at::Tensor& grad, const std::vector<at::Tensor>&,
                                          const std::vector<bool>&) -> std::vector<at::Tensor> {
            return {packed->input_gradient(grad)};
          }});
}

at::Tensor FrozenLinear::input_gradient(const at::Tensor& grad) const {
  const at::NoGradGuard no_grad;
  return packed_->input_gradient(grad.contiguous());
}

}  // namespace convoy::kernels
