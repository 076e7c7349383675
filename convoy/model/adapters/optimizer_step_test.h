// SPDX-License-Identifier: Apache-2.0
//
// Imitates an optimizer's step on one tensor, for tests of values that are derived from it.
#pragma once

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "convoy/model/kernels/adamw/adamw_update.h"

namespace convoy::adapters {

inline void take_optimizer_step(const at::Tensor& value) {
  kernels::adamw_update({{.value = value.detach(),
                          .gradient = at::ones(value.sizes()),
                          .exp_avg = at::zeros(value.sizes()),
                          .exp_avg_sq = at::zeros(value.sizes()),
                          .rounded = {}}},
                        {.learning_rate = 0.1});
}

}  // namespace convoy::adapters
