// SPDX-License-Identifier: Apache-2.0
//
// The global gradient norm and the factor that clips it, as torch.nn.utils.clip_grad_norm_ defines
// them.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace convoy::optim {

// L2 norm over all elements of all gradients, fp32 or bf16, summed in double in a fixed order. NaN
// or Inf when any element is: the caller decides what that means.
double global_norm(const std::vector<at::Tensor>& gradients);

// min(1, max_norm / (norm + 1e-6)); 1 when max_norm is 0 (clipping off). NaN for a NaN norm.
double clip_coefficient(double norm, double max_norm);

}  // namespace convoy::optim
