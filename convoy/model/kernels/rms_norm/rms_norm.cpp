// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/rms_norm/rms_norm.h"

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/ops/autograd.h"
#include "convoy/model/kernels/ops/op_table.h"

namespace convoy::kernels {
namespace {

void check_norm(const at::Tensor& x, const at::Tensor& weight_D) {
  CONVOY_INVARIANT(x.is_contiguous() && weight_D.is_contiguous(),
                   "rms_norm needs contiguous inputs");
  CONVOY_INVARIANT(weight_D.scalar_type() == x.scalar_type() && weight_D.numel() == x.size(-1),
                   "rms_norm needs a weight like the last dimension of x");
}

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight_D, double epsilon,
                    NormOrder order) {
  check_norm(x, weight_D);
  const bool records = records_gradient({x, weight_D});
  const at::NoGradGuard no_grad;
  at::Tensor inverse_rms;
  if (records)
    inverse_rms =
        at::empty({x.numel() / std::max<int64_t>(x.size(-1), 1)}, x.options().dtype(at::kFloat));
  const at::Tensor y = op_table(x).rms_norm.forward(x, weight_D, inverse_rms, epsilon, order);
  if (!records) return y;
  return with_backward(
      y, {.op = "rms_norm",
          .inputs = {x, weight_D},
          .saved = {x, weight_D, inverse_rms},
          .gradients = [order](const at::Tensor& grad, const std::vector<at::Tensor>& saved,
                               const std::vector<bool>& wanted) -> std::vector<at::Tensor> {
            NormGradients gradients = op_table(grad).rms_norm.backward(grad, saved[0], saved[1],
                                                                       saved[2], order, wanted[1]);
            return {gradients.x, gradients.weight_D};
          }});
}

AddedNorm add_rms_norm(const at::Tensor& x, const at::Tensor& added, const at::Tensor& weight_D,
                       double epsilon, NormOrder order) {
  if (!added.defined()) return {x, rms_norm(x, weight_D, epsilon, order)};
  if (records_gradient({x, added, weight_D})) {
    const at::Tensor recorded = x + added;
    return {recorded, rms_norm(recorded, weight_D, epsilon, order)};
  }
  check_norm(x, weight_D);
  CONVOY_INVARIANT(
      added.is_contiguous() && added.sizes() == x.sizes() && added.scalar_type() == x.scalar_type(),
      "add_rms_norm needs two tensors alike");
  const at::NoGradGuard no_grad;
  return op_table(x).rms_norm.add_forward(x, added, weight_D, epsilon, order);
}

}  // namespace convoy::kernels
