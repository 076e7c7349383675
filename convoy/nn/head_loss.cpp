// SPDX-License-Identifier: Apache-2.0
#include "convoy/nn/head_loss.h"

namespace convoy::nn {

// Its backward scales what forward computed: the weight is not read there.
at::Tensor head_loss(CausalLm& model, const at::Tensor& hidden_TD,
                     const kernels::LabelledTokens& labels) {
  const UnitUse use = model.use_head();
  return kernels::linear_cross_entropy(hidden_TD, model.head().weight(), labels);
}

kernels::TokenLosses head_token_losses(CausalLm& model, const at::Tensor& hidden_TD,
                                       const kernels::LabelledTokens& labels) {
  const UnitUse use = model.use_head();
  return kernels::linear_token_losses(hidden_TD, model.head().weight(), labels);
}

}  // namespace convoy::nn
