// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>

#include "convoy/model/kernels/counter_draws/counter_words.h"
#include "convoy/model/kernels/dropout/dropout_ops.h"

namespace convoy::kernels {
namespace {

at::Tensor drop(const at::Tensor& x, const DropRule& rule) {
  const at::Tensor words = counter_words({rule.key_low, rule.key_high}, 0, x.numel(), x.device());
  const at::Tensor kept = words.ge(static_cast<int64_t>(rule.dropped_below)).view(x.sizes());
  return x.to(at::kFloat).mul(kept.to(at::kFloat).mul_(rule.scale)).to(x.scalar_type());
}

}  // namespace

const DropoutOps kDropoutAten = {drop};

}  // namespace convoy::kernels
