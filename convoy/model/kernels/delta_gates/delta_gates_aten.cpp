// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>

#include "convoy/model/kernels/delta_gates/delta_gates_ops.h"

namespace convoy::kernels {
namespace {

DeltaGates run_forward(const at::Tensor& a_TH, const at::Tensor& b_TH, const at::Tensor& a_log_H,
                       const at::Tensor& dt_bias_H) {
  const at::Tensor step_TH = a_TH.to(at::kFloat) + dt_bias_H.to(at::kFloat);
  return {at::softplus(step_TH).mul_(a_log_H.to(at::kFloat).exp().neg_()),
          b_TH.to(at::kFloat).sigmoid().to(b_TH.scalar_type()).to(at::kFloat)};
}

}  // namespace

const DeltaGatesOps kDeltaGatesAten = {run_forward};

}  // namespace convoy::kernels
