// SPDX-License-Identifier: Apache-2.0
//
// Root-mean-square norm (arXiv 1910.07467) in the two orders of rounding that model families use.
// Shapes: T tokens (or T*heads rows), D features.
#pragma once

#include <ATen/core/Tensor.h>

namespace convoy::kernels {

enum class NormOrder {
  CastThenScale,           // Llama, Qwen: normalise in fp32, cast to the input dtype, then times w
  ScaleByOnePlusThenCast,  // Gemma: normalise in fp32, times (1 + w) in fp32, then cast
};

// Differentiable in x and weight. x [..., D] contiguous, fp32 or bf16; weight [D] in the dtype of
// x.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight_D, double epsilon,
                    NormOrder order);

struct AddedNorm {
  at::Tensor sum;
  at::Tensor norm;  // norm of the sum as it is stored
};

// x + added and its norm, both in the type of x. `added` is like x, or undefined: then the sum is
// x. Differentiable in all tensors. On GPUs forward and backward take one pass over the rows each.
AddedNorm add_rms_norm(const at::Tensor& x, const at::Tensor& added, const at::Tensor& weight_D,
                       double epsilon, NormOrder order);

}  // namespace convoy::kernels
