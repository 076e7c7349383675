// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/dropout/dropout.h"

#include <cmath>

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/dropout/dropout_ops.h"
#include "convoy/model/kernels/ops/autograd.h"

namespace convoy::kernels {

at::Tensor dropout(const at::Tensor& x, double p, uint64_t key) {
  const at::Tensor y = drop(x, p, key);
  if (p == 0 || !records_gradient({x})) return y;
  return with_backward(
      y, {.op = "dropout",
          .inputs = {x},
          .saved = {},
          .gradients = [p, key](const at::Tensor& grad, const std::vector<at::Tensor>&,
                                const std::vector<bool>&) -> std::vector<at::Tensor> {
            return {drop(grad, p, key)};
          }});
}

at::Tensor drop(const at::Tensor& x, double p, uint64_t key) {
  CONVOY_INVARIANT(p >= 0 && p < 1 && x.is_contiguous(),
                   "drop needs 0 <= p < 1 and a contiguous tensor");
  if (p == 0) return x;
  const at::NoGradGuard no_grad;
  const DropRule rule{.key_low = static_cast<uint32_t>(key),
                      .key_high = static_cast<uint32_t>(key >> 32),
                      .dropped_below = static_cast<uint32_t>(std::ldexp(p, 32)),
                      .scale = static_cast<float>(1.0 / (1.0 - p))};
  return dropout_ops(x.device()).drop(x, rule);
}

}  // namespace convoy::kernels
