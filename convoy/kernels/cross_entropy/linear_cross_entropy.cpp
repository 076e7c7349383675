// SPDX-License-Identifier: Apache-2.0
#include "convoy/kernels/cross_entropy/linear_cross_entropy.h"

#include "convoy/kernels/cross_entropy/linear_cross_entropy_reference.h"

namespace convoy::kernels {

at::Tensor linear_cross_entropy(const at::Tensor& hidden_TD, const at::Tensor& weight_VD, const at::Tensor& labels_T) {
  return reference::linear_cross_entropy(hidden_TD.to(at::kFloat), weight_VD.to(at::kFloat), labels_T);
}

TokenLosses linear_token_losses(const at::Tensor& hidden_TD, const at::Tensor& weight_VD, const at::Tensor& labels_T) {
  const at::NoGradGuard no_grad;
  at::Tensor logits_TV = at::matmul(hidden_TD, weight_VD.t()).to(at::kFloat);
  at::Tensor nll_T = at::cross_entropy_loss(logits_TV, labels_T, {}, at::Reduction::None, kIgnoredLabel);
  return {nll_T, logits_TV.argmax(-1).eq(labels_T)};
}

}  // namespace convoy::kernels
