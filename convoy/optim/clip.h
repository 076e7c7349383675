// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace convoy::optim {

// Scales fp32 `gradients` in place so that their global L2 norm is at most `max_norm` (0 = leave them) and returns the
// norm before. torch's coefficient: min(1, max_norm / (norm + 1e-6)). A norm that is not finite leaves them unscaled;
// the caller decides.
double clip_gradients(const std::vector<at::Tensor>& gradients, double max_norm);

}  // namespace convoy::optim
