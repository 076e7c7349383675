// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/adamw/adamw_update.h"

#include "convoy/model/kernels/adamw/adamw_ops.h"

namespace convoy::kernels {
namespace {

bool is_wide(const AdamWTensors& parameter) {
  return parameter.value.scalar_type() == at::kFloat &&
         parameter.exp_avg.scalar_type() == at::kFloat;
}

}  // namespace

void adamw_update(const std::vector<AdamWTensors>& parameters, const AdamWStep& step) {
  if (parameters.empty()) return;
  const at::NoGradGuard no_grad;
  std::vector<AdamWTensors> wide, narrow;
  for (const AdamWTensors& parameter : parameters)
    (is_wide(parameter) ? wide : narrow).push_back(parameter);
  const AdamWOps& ops = adamw_ops(parameters[0].value.device());
  if (!wide.empty()) ops.update(wide, step);
  if (!narrow.empty()) ops.update_narrow(narrow, step);
  // Our own loops bypass LibTorch's version counters, by which caches of derived values see
  // changes.
  for (const AdamWTensors& parameter : parameters)
    for (const at::Tensor& written : {parameter.value, parameter.rounded})
      if (written.defined()) written.unsafeGetTensorImpl()->bump_version();
}

}  // namespace convoy::kernels
