// SPDX-License-Identifier: Apache-2.0
#include "convoy/kernels/adamw/adamw_update.h"

#include "convoy/kernels/ops/op_table.h"

namespace convoy::kernels {

void adamw_update(const std::vector<AdamWTensors>& parameters, const AdamWStep& step) {
  if (parameters.empty()) return;
  const at::NoGradGuard no_grad;
  op_table(parameters[0].value).adamw.update(parameters, step);
  // Our own loops write past LibTorch, which counts changes for whoever keeps what follows from a
  // tensor.
  for (const AdamWTensors& parameter : parameters)
    for (const at::Tensor& written : {parameter.value, parameter.rounded})
      if (written.defined()) written.unsafeGetTensorImpl()->bump_version();
}

}  // namespace convoy::kernels
