// SPDX-License-Identifier: Apache-2.0
//
// Backward is the rotation by the negative angle.
#include "convoy/model/kernels/rope/rope.h"

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/ops/autograd.h"
#include "convoy/model/kernels/ops/op_table.h"

namespace convoy::kernels {
at::Tensor rope(const at::Tensor& x_THE, const at::Tensor& cos_PE, const at::Tensor& sin_PE,
                const at::Tensor& positions_T) {
  CONVOY_INVARIANT(
      x_THE.dim() == 3 && (x_THE.stride(2) == 1 || x_THE.numel() == 0) && x_THE.size(2) % 2 == 0,
      "rope needs [T, H, E] with contiguous, even E");
  CONVOY_INVARIANT(cos_PE.is_contiguous() && sin_PE.is_contiguous() &&
                       cos_PE.size(1) * 2 == x_THE.size(2) && sin_PE.sizes() == cos_PE.sizes(),
                   "rope needs contiguous tables of E/2 columns");
  CONVOY_INVARIANT(positions_T.is_contiguous() && positions_T.size(0) == x_THE.size(0),
                   "rope needs one position per token");
  const bool records = records_gradient({x_THE});
  const at::NoGradGuard no_grad;
  const at::Tensor y = op_table(x_THE).rope.rotate(x_THE, cos_PE, sin_PE, positions_T, 1.0f);
  if (!records) return y;
  return with_backward(
      y, {.op = "rope",
          .inputs = {x_THE},
          .saved = {cos_PE, sin_PE, positions_T},
          .gradients = [](const at::Tensor& grad, const std::vector<at::Tensor>& saved,
                          const std::vector<bool>&) -> std::vector<at::Tensor> {
            return {op_table(grad).rope.rotate(grad, saved[0], saved[1], saved[2], -1.0f)};
          }});
}

}  // namespace convoy::kernels
