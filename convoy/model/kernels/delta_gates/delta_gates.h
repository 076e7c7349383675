// SPDX-License-Identifier: Apache-2.0
//
// The two gates of the gated delta rule (arXiv 2412.06464) for each token and value head, from two
// linear maps of the token and two parameters of the head:
//   log_decay = -exp(a_log) softplus(a + dt_bias),  beta = sigmoid(b).
// softplus(x) is x from 20 on, as in torch. beta is rounded to the dtype of b, as in transformers.
// On CPUs a token's gates do not depend on its neighbours, to the bit. Shapes: T tokens, H heads.
#pragma once

#include <ATen/core/Tensor.h>

namespace convoy::kernels {

struct DeltaGates {
  at::Tensor log_decay_TH;  // fp32, at most 0
  at::Tensor beta_TH;       // fp32
};

// Differentiable in all four; saves only its inputs. All have one dtype, fp32 or bf16. a and b may
// be columns of a wider tensor.
DeltaGates delta_gates(const at::Tensor& a_TH, const at::Tensor& b_TH, const at::Tensor& a_log_H,
                       const at::Tensor& dt_bias_H);

}  // namespace convoy::kernels
