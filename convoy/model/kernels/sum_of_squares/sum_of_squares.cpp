// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/sum_of_squares/sum_of_squares.h"

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/sum_of_squares/sum_of_squares_ops.h"

namespace convoy::kernels {

at::Tensor sum_of_squares(const std::vector<at::Tensor>& tensors) {
  if (tensors.empty()) return at::zeros({}, at::kDouble);
  for (const at::Tensor& tensor : tensors)
    CONVOY_INVARIANT(
        (tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kBFloat16) &&
            tensor.is_contiguous(),
        "sum_of_squares needs contiguous tensors of fp32 or bf16");
  const at::NoGradGuard no_grad;
  return sum_of_squares_ops(tensors[0].device()).sum(tensors);
}

}  // namespace convoy::kernels
