// SPDX-License-Identifier: Apache-2.0
//
// act(gate) * up, the middle of a gated feed-forward block (arXiv 2002.05202) and the output gate
// of attention (Sigmoid).
#pragma once

#include <ATen/core/Tensor.h>

namespace convoy::kernels {

enum class Activation { Silu, GeluTanh, Sigmoid };

// Differentiable in both. gate, up [T, F], same dtype (fp32 or bf16). Saves only its two inputs.
// Without gradients the rows may have a stride, as columns of a joined product have.
at::Tensor gated_activation(const at::Tensor& gate_TF, const at::Tensor& up_TF,
                            Activation activation);

}  // namespace convoy::kernels
