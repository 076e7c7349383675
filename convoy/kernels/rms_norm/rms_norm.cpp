// SPDX-License-Identifier: Apache-2.0
#include "convoy/kernels/rms_norm/rms_norm.h"

#include "convoy/kernels/rms_norm/rms_norm_reference.h"

namespace convoy::kernels {

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight_D, double epsilon, NormOrder order) {
  return reference::rms_norm(x.to(at::kFloat), weight_D.to(at::kFloat), epsilon, order).to(x.scalar_type());
}

}  // namespace convoy::kernels
