// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/rms_norm/rms_norm.h"

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/ops/autograd.h"
#include "convoy/model/kernels/rms_norm/rms_norm_ops.h"

namespace convoy::kernels {
namespace {

void check_norm(const at::Tensor& x, const at::Tensor& weight_D) {
  CONVOY_INVARIANT(x.is_contiguous() && weight_D.is_contiguous(),
                   "rms_norm needs contiguous inputs");
  CONVOY_INVARIANT(weight_D.scalar_type() == x.scalar_type() && weight_D.numel() == x.size(-1),
                   "rms_norm needs a weight like the last dimension of x");
}

at::Tensor room_for_inverses(const at::Tensor& x) {
  return at::empty({x.numel() / std::max<int64_t>(x.size(-1), 1)}, x.options().dtype(at::kFloat));
}

void add_recomputed(const at::Tensor& y, const at::Tensor& x, const at::Tensor& weight_D,
                    double epsilon, NormOrder order) {
  RecomputedOutputs::add(y, {x, weight_D}, [epsilon, order](const std::vector<at::Tensor>& from) {
    return rms_norm_ops(from[0].device()).forward(from[0], from[1], {}, epsilon, order);
  });
}

// Gradients of a sum's terms and of its norm's weight, from the gradients of the sum and of the
// norm.
NormGradients sum_gradients(const std::vector<at::Tensor>& grads,
                            const std::vector<at::Tensor>& saved, NormOrder order,
                            bool wants_weight) {
  if (!grads[1].defined()) return {.x = grads[0], .weight_D = {}};
  const at::Tensor of_sum = grads[0].defined() ? grads[0].contiguous() : at::Tensor();
  return rms_norm_ops(saved[0].device())
      .backward(grads[1].contiguous(), saved[0], saved[1], saved[2], of_sum, order, wants_weight);
}

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight_D, double epsilon,
                    NormOrder order) {
  check_norm(x, weight_D);
  const bool records = records_gradient({x, weight_D});
  const at::NoGradGuard no_grad;
  const at::Tensor inverse_rms = records ? room_for_inverses(x) : at::Tensor();
  const at::Tensor y = rms_norm_ops(x.device()).forward(x, weight_D, inverse_rms, epsilon, order);
  if (!records) return y;
  add_recomputed(y, x, weight_D, epsilon, order);
  return with_backward(
      y, {.op = "rms_norm",
          .inputs = {x, weight_D},
          .saved = {x, weight_D, inverse_rms},
          .gradients = [order](const at::Tensor& grad, const std::vector<at::Tensor>& saved,
                               const std::vector<bool>& wanted) -> std::vector<at::Tensor> {
            const NormGradients gradients =
                sum_gradients({at::Tensor(), grad}, saved, order, wanted[1]);
            return {gradients.x, gradients.weight_D};
          }});
}

AddedNorm add_rms_norm(const at::Tensor& x, const at::Tensor& added, const at::Tensor& weight_D,
                       double epsilon, NormOrder order) {
  if (!added.defined()) return {x, rms_norm(x, weight_D, epsilon, order)};
  check_norm(x, weight_D);
  CONVOY_INVARIANT(
      added.is_contiguous() && added.sizes() == x.sizes() && added.scalar_type() == x.scalar_type(),
      "add_rms_norm needs two tensors alike");
  const bool records = records_gradient({x, added, weight_D});
  const at::NoGradGuard no_grad;
  const at::Tensor inverse_rms = records ? room_for_inverses(x) : at::Tensor();
  const AddedNorm result =
      rms_norm_ops(x.device()).add_forward(x, added, weight_D, inverse_rms, epsilon, order);
  if (!records) return result;
  add_recomputed(result.norm, result.sum, weight_D, epsilon, order);
  const std::vector<at::Tensor> outputs = with_backward(
      {result.sum, result.norm},
      {.op = "add_rms_norm",
       .inputs = {x, added, weight_D},
       .saved = {result.sum, weight_D, inverse_rms},
       .gradients = [order](const std::vector<at::Tensor>& grads,
                            const std::vector<at::Tensor>& saved,
                            const std::vector<bool>& wanted) -> std::vector<at::Tensor> {
         const NormGradients gradients = sum_gradients(grads, saved, order, wanted[2]);
         return {gradients.x, gradients.x, gradients.weight_D};
       }});
  return {outputs[0], outputs[1]};
}

}  // namespace convoy::kernels
