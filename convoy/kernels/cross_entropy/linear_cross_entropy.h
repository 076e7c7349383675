// SPDX-License-Identifier: Apache-2.0
//
// Output head and cross-entropy in one op, in chunks of supervised rows, so that the logits of a
// whole batch never exist (Liger-Kernel, arXiv 2410.10989; apple/ml-cross-entropy, arXiv
// 2411.09009). Shapes: T tokens, D hidden, V vocabulary.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace convoy::kernels {

inline constexpr int64_t kIgnoredLabel = -100;

// Sum over supervised tokens of -log softmax(hidden @ weight^T)[label], fp32 scalar; differentiable
// in hidden and, if it requires grad, in weight. Rows labelled kIgnoredLabel cost nothing. Logits
// and sums in fp32. Gradients are computed during forward and only scaled in backward, so nothing
// of size T x V is kept.
at::Tensor linear_cross_entropy(const at::Tensor& hidden_TD, const at::Tensor& weight_VD,
                                const at::Tensor& labels_T);

struct TokenLosses {
  at::Tensor nll_T;      // fp32, 0 where ignored
  at::Tensor correct_T;  // bool: the label is the most likely token
};
// Not differentiable: the figures of evaluation and scoring.
TokenLosses linear_token_losses(const at::Tensor& hidden_TD, const at::Tensor& weight_VD,
                                const at::Tensor& labels_T);

}  // namespace convoy::kernels
