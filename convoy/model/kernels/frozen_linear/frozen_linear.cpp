// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/frozen_linear/frozen_linear.h"

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/frozen_linear/frozen_linear_ops.h"
#include "convoy/model/kernels/ops/autograd.h"

namespace convoy::kernels {

at::Tensor PackedLinear::argmax(const at::Tensor& x_TI, int64_t num_outputs) {
  auto [largest_T, output_T] = sums(x_TI).narrow(1, 0, num_outputs).max(1);
  return output_T.masked_fill(largest_T.isfinite().logical_not(), -1);
}

FrozenLinear::FrozenLinear(const at::Tensor& weight_OI, const at::Tensor& bias_O) {
  CONVOY_INVARIANT(weight_OI.dim() == 2 && weight_OI.is_contiguous(),
                   "frozen_linear needs a contiguous [O, I]");
  CONVOY_INVARIANT(
      weight_OI.scalar_type() == at::kFloat || weight_OI.scalar_type() == at::kBFloat16,
      "frozen_linear needs fp32 or bf16, found {}", c10::toString(weight_OI.scalar_type()));
  weight_ = std::make_shared<Weight>(
      Weight{weight_OI.detach(), bias_O.defined() ? bias_O.detach() : at::Tensor(), nullptr});
}

FrozenLinear::FrozenLinear(const IntegerWeight& weight, const at::Tensor& bias_O) {
  const at::NoGradGuard no_grad;
  weight_ = std::make_shared<Weight>(
      Weight{{}, {}, frozen_linear_ops(weight.codes_OI.device()).pack_integer(weight, bias_O)});
}

FrozenLinear::FrozenLinear(const BitsandbytesWeight& weight, const at::Tensor& bias_O) {
  CONVOY_INVARIANT(weight.shape.size() == 2, "frozen_linear needs [O, I]");
  const at::NoGradGuard no_grad;
  weight_ = std::make_shared<Weight>(
      Weight{{}, {}, frozen_linear_ops(weight.codes.device()).pack_bitsandbytes(weight, bias_O)});
}

PackedLinear& FrozenLinear::packed() const {
  if (!weight_->packed) {
    const at::NoGradGuard no_grad;
    weight_->packed =
        frozen_linear_ops(weight_->weight_OI.device()).pack(weight_->weight_OI, weight_->bias_O);
  }
  return *weight_->packed;
}

void FrozenLinear::release_packed() {
  if (weight_->weight_OI.defined()) weight_->packed.reset();
}

at::Tensor FrozenLinear::forward(const at::Tensor& x) const {
  const bool records = records_gradient({x});
  const at::NoGradGuard no_grad;
  std::vector<int64_t> sizes = x.sizes().vec();
  const at::Tensor y_TO = product(x.reshape({-1, x.size(-1)}));
  sizes.back() = y_TO.size(1);
  const at::Tensor y = y_TO.view(sizes);
  if (!records) return y;
  return with_backward(
      y, {.op = "frozen_linear",
          .inputs = {x},
          .saved = {},
          .gradients = [map = *this, sizes = x.sizes().vec()](
                           const at::Tensor& grad, const std::vector<at::Tensor>&,
                           const std::vector<bool>&) -> std::vector<at::Tensor> {
            return {map.input_gradient(grad.reshape({-1, grad.size(-1)})).view(sizes)};
          }});
}

at::Tensor FrozenLinear::product(const at::Tensor& x_TI, const ProductTerm& added) const {
  const at::NoGradGuard no_grad;
  return packed().forward(x_TI.contiguous(), added);
}

at::Tensor FrozenLinear::input_gradient(const at::Tensor& grad_TO, const ProductTerm& added,
                                        const at::Tensor& sum_TI) const {
  const at::NoGradGuard no_grad;
  return packed().input_gradient(grad_TO.contiguous(), added, sum_TI);
}

at::Tensor FrozenLinear::sums(const at::Tensor& x_TI) const {
  const at::NoGradGuard no_grad;
  return packed().sums(x_TI.contiguous());
}

at::Tensor FrozenLinear::argmax(const at::Tensor& x_TI, int64_t num_outputs) const {
  const at::NoGradGuard no_grad;
  return packed().argmax(x_TI.contiguous(), num_outputs);
}

}  // namespace convoy::kernels
