// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/nn/head_loss.h"

#include <algorithm>

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/frozen_linear/frozen_linear.h"
#include "convoy/model/kernels/matrix_product/matrix_product.h"

namespace convoy::nn {
namespace {

// Number of tokens with logits in memory at a time.
constexpr int64_t kChunkTokens = 256;

// x W^T before its last rounding if the device gives it. A head has no adapter.
at::Tensor sums_of(const Linear& head, const at::Tensor& hidden_TD) {
  CONVOY_INVARIANT(head.adapter() == nullptr, "{} has an adapter", head.name());
  if (!head.weight().requires_grad()) return head.frozen().sums(hidden_TD.detach());
  return kernels::matrix_product({{hidden_TD.detach().contiguous(), head.weight().detach().t()}},
                                 {.bias_N = head.bias(), .wide = hidden_TD.is_cpu()});
}

// A quantised head has no weight any more, so its product gives the logits.
kernels::TokenLosses quantized_token_losses(CausalLm& model, const at::Tensor& hidden_TD,
                                            const kernels::LabelledTokens& labels,
                                            double temperature) {
  const at::NoGradGuard no_grad;
  const at::TensorOptions options = hidden_TD.options();
  kernels::TokenLosses losses{at::zeros({labels.num_tokens()}, options.dtype(at::kFloat)),
                              at::zeros({labels.num_tokens()}, options.dtype(at::kBool))};
  for (int64_t first = 0; first < labels.num_labels(); first += kChunkTokens) {
    const int64_t count = std::min(kChunkTokens, labels.num_labels() - first);
    const at::Tensor tokens_N = labels.tokens_N().narrow(0, first, count);
    const at::Tensor labels_N = labels.labels_N().narrow(0, first, count);
    at::Tensor logits_NV = head_logits(model, hidden_TD.index_select(0, tokens_N)).to(at::kFloat);
    if (temperature != 1) logits_NV = logits_NV.mul(kernels::logit_factor(temperature));
    losses.nll_T.index_copy_(0, tokens_N,
                             at::cross_entropy_loss(logits_NV, labels_N, {}, at::Reduction::None));
    losses.correct_T.index_copy_(0, tokens_N, logits_NV.argmax(1).eq(labels_N));
  }
  return losses;
}

}  // namespace

at::Tensor head_logits(CausalLm& model, const at::Tensor& hidden_TD) {
  return kernels::capped_logits(sums_of(model.head(), hidden_TD), model.logit_cap());
}

// The backward pass scales what forward computed, so it does not read the weight.
at::Tensor head_loss(CausalLm& model, const at::Tensor& hidden_TD,
                     const kernels::LabelledTokens& labels, double temperature) {
  const UnitUse use = model.use_head();
  return kernels::linear_cross_entropy(hidden_TD, model.head().weight(), labels,
                                       {.cap = model.logit_cap(), .temperature = temperature});
}

at::Tensor head_logit_loss(CausalLm& model, const at::Tensor& hidden_TD, const at::Tensor& tokens_N,
                           const kernels::LogitLossFunction& loss) {
  const UnitUse use = model.use_head();
  return kernels::linear_logit_loss(hidden_TD, model.head().weight(), tokens_N, model.logit_cap(),
                                    loss);
}

kernels::TokenLosses head_token_losses(CausalLm& model, const at::Tensor& hidden_TD,
                                       const kernels::LabelledTokens& labels, double temperature) {
  const UnitUse use = model.use_head();
  if (model.head().is_integer())
    return quantized_token_losses(model, hidden_TD, labels, temperature);
  return kernels::linear_token_losses(hidden_TD, model.head().weight(), labels,
                                      {.cap = model.logit_cap(), .temperature = temperature});
}

}  // namespace convoy::nn
