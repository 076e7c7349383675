// SPDX-License-Identifier: Apache-2.0
//
// The output head and its losses as a use of the head's unit. Shapes: T tokens, D hidden.
#pragma once

#include "convoy/model/kernels/cross_entropy/linear_cross_entropy.h"
#include "convoy/model/nn/causal_lm.h"

namespace convoy::nn {

// The logits [T, V] of the model's head under its soft cap: fp32 on CPUs, with the bits that
// head_loss() and head_token_losses() sum over, and under a cap; else in the type of the hidden
// states. Not differentiable.
at::Tensor head_logits(CausalLm& model, const at::Tensor& hidden_TD);

// kernels::linear_cross_entropy() with the model's head.
at::Tensor head_loss(CausalLm& model, const at::Tensor& hidden_TD,
                     const kernels::LabelledTokens& labels);

// kernels::linear_token_losses() with the model's head.
kernels::TokenLosses head_token_losses(CausalLm& model, const at::Tensor& hidden_TD,
                                       const kernels::LabelledTokens& labels);

}  // namespace convoy::nn
