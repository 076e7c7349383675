// SPDX-License-Identifier: Apache-2.0
#include "convoy/kernels/adamw/adamw_update.h"

#include "convoy/kernels/ops/op_table.h"

namespace convoy::kernels {

void adamw_update(const std::vector<AdamWTensors>& parameters, const AdamWStep& step) {
  if (parameters.empty()) return;
  const at::NoGradGuard no_grad;
  op_table(parameters[0].value).adamw.update(parameters, step);
}

}  // namespace convoy::kernels
