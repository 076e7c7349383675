// SPDX-License-Identifier: Apache-2.0
//
// Backward is the rotation by the negative angle.
#include "convoy/model/kernels/rope/rope.h"

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/ops/autograd.h"
#include "convoy/model/kernels/rope/rope_ops.h"

namespace convoy::kernels {
namespace {

void check_rope(const at::Tensor& x_THE, const at::Tensor& cos_PE, const at::Tensor& sin_PE,
                const at::Tensor& positions_T) {
  CONVOY_INVARIANT(
      x_THE.dim() == 3 && (x_THE.stride(2) == 1 || x_THE.numel() == 0) && x_THE.size(2) % 2 == 0,
      "rope needs [T, H, E] with contiguous, even E");
  CONVOY_INVARIANT(cos_PE.is_contiguous() && sin_PE.is_contiguous() &&
                       cos_PE.size(1) * 2 == x_THE.size(2) && sin_PE.sizes() == cos_PE.sizes(),
                   "rope needs contiguous tables of E/2 columns");
  CONVOY_INVARIANT(positions_T.is_contiguous() && positions_T.size(0) == x_THE.size(0),
                   "rope needs one position per token");
}

// When backward computes x again, y need not be kept either: it is computed from that x.
void add_recomputed(const at::Tensor& y_THE, const at::Tensor& x_THE, const at::Tensor& cos_PE,
                    const at::Tensor& sin_PE, const at::Tensor& positions_T) {
  if (!RecomputedOutputs::contain(x_THE)) return;
  RecomputedOutputs::add(
      y_THE, {x_THE, cos_PE, sin_PE, positions_T}, [](const std::vector<at::Tensor>& from) {
        return rope_ops(from[0].device()).rotate(from[0], from[1], from[2], from[3], 1.0f);
      });
}

}  // namespace

at::Tensor rope(const at::Tensor& x_THE, const at::Tensor& cos_PE, const at::Tensor& sin_PE,
                const at::Tensor& positions_T) {
  check_rope(x_THE, cos_PE, sin_PE, positions_T);
  const bool records = records_gradient({x_THE});
  const at::NoGradGuard no_grad;
  const at::Tensor y = rope_ops(x_THE.device()).rotate(x_THE, cos_PE, sin_PE, positions_T, 1.0f);
  if (!records) return y;
  add_recomputed(y, x_THE, cos_PE, sin_PE, positions_T);
  return with_backward(
      y, {.op = "rope",
          .inputs = {x_THE},
          .saved = {cos_PE, sin_PE, positions_T},
          .gradients = [](const at::Tensor& grad, const std::vector<at::Tensor>& saved,
                          const std::vector<bool>&) -> std::vector<at::Tensor> {
            return {rope_ops(grad.device()).rotate(grad, saved[0], saved[1], saved[2], -1.0f)};
          }});
}

RotatedHeads rope(const RotatedHeads& heads, const at::Tensor& cos_PE, const at::Tensor& sin_PE,
                  const at::Tensor& positions_T) {
  const auto& [q_THE, k_TKE] = heads;
  check_rope(q_THE, cos_PE, sin_PE, positions_T);
  check_rope(k_TKE, cos_PE, sin_PE, positions_T);
  const bool records = records_gradient({q_THE, k_TKE});
  const at::NoGradGuard no_grad;
  const RotatedHeads rotated =
      rope_ops(q_THE.device()).rotate_both(heads, cos_PE, sin_PE, positions_T, 1.0f);
  if (!records) return rotated;
  add_recomputed(rotated.q_THE, q_THE, cos_PE, sin_PE, positions_T);
  add_recomputed(rotated.k_TKE, k_TKE, cos_PE, sin_PE, positions_T);
  const std::vector<at::Tensor> outputs = with_backward(
      {rotated.q_THE, rotated.k_TKE},
      {.op = "rope",
       .inputs = {q_THE, k_TKE},
       .saved = {cos_PE, sin_PE, positions_T},
       .gradients = [](const std::vector<at::Tensor>& grads, const std::vector<at::Tensor>& saved,
                       const std::vector<bool>&) -> std::vector<at::Tensor> {
         const RopeOps& ops = rope_ops(saved[0].device());
         if (grads[0].defined() && grads[1].defined()) {
           const RotatedHeads back = ops.rotate_both({grads[0].contiguous(), grads[1].contiguous()},
                                                     saved[0], saved[1], saved[2], -1.0f);
           return {back.q_THE, back.k_TKE};
         }
         std::vector<at::Tensor> gradients(2);
         for (size_t at = 0; at < 2; ++at)
           if (grads[at].defined())
             gradients[at] =
                 ops.rotate(grads[at].contiguous(), saved[0], saved[1], saved[2], -1.0f);
         return gradients;
       }});
  return {outputs[0], outputs[1]};
}

}  // namespace convoy::kernels
