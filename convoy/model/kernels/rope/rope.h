// SPDX-License-Identifier: Apache-2.0
//
// Rotary position embedding (arXiv 2104.09864), half-split layout as in Hugging Face's rotate_half.
// Shapes: T tokens, H and K heads, E head features, P positions of the table.
#pragma once

#include <ATen/core/Tensor.h>

namespace convoy::kernels {

// Differentiable in x. x_THE: T and H may have any stride, E contiguous; cos_PE, sin_PE: fp32
// tables of E/2 columns; positions_T int64. Computed in fp32, returned in the dtype of x.
at::Tensor rope(const at::Tensor& x_THE, const at::Tensor& cos_PE, const at::Tensor& sin_PE,
                const at::Tensor& positions_T);

// The same for queries and keys, which have one dtype.
struct RotatedHeads {
  at::Tensor q_THE;
  at::Tensor k_TKE;
};
RotatedHeads rope(const RotatedHeads& heads, const at::Tensor& cos_PE, const at::Tensor& sin_PE,
                  const at::Tensor& positions_T);

}  // namespace convoy::kernels
