// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/cross_entropy/linear_cross_entropy_reference.h"

namespace convoy::kernels::reference {

at::Tensor linear_cross_entropy(const at::Tensor& hidden_TD, const at::Tensor& weight_VD,
                                const at::Tensor& labels_T) {
  return at::cross_entropy_loss(at::matmul(hidden_TD, weight_VD.t()), labels_T, {},
                                at::Reduction::Sum, kIgnoredLabel);
}

}  // namespace convoy::kernels::reference
