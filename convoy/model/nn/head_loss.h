// SPDX-License-Identifier: Apache-2.0
//
// Applies the output head and its losses, each time as a use of the head's unit. Shapes: T tokens,
// D hidden.
#pragma once

#include "convoy/model/kernels/cross_entropy/linear_cross_entropy.h"
#include "convoy/model/nn/causal_lm.h"

namespace convoy::nn {

// The logits [T, V] of the model's head under its soft cap. On CPUs they are fp32, with the bits
// that head_loss() and head_token_losses() sum over. Under a cap they are fp32 too; otherwise they
// have the type of the hidden states. Not differentiable.
at::Tensor head_logits(CausalLm& model, const at::Tensor& hidden_TD);

// kernels::linear_cross_entropy() with the model's head, at a temperature of its distribution.
at::Tensor head_loss(CausalLm& model, const at::Tensor& hidden_TD,
                     const kernels::LabelledTokens& labels, double temperature = 1);

// kernels::linear_logit_loss() with the model's head, which is not quantised.
at::Tensor head_logit_loss(CausalLm& model, const at::Tensor& hidden_TD, const at::Tensor& tokens_N,
                           const kernels::LogitLossFunction& loss);

// kernels::linear_token_losses() with the model's head, at a temperature of its distribution.
kernels::TokenLosses head_token_losses(CausalLm& model, const at::Tensor& hidden_TD,
                                       const kernels::LabelledTokens& labels,
                                       double temperature = 1);

}  // namespace convoy::nn
