// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/rms_norm/rms_norm_reference.h"

namespace convoy::kernels::reference {

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight_D, double epsilon,
                    NormOrder order) {
  at::Tensor normed = x * at::rsqrt(x.square().mean(-1, true) + epsilon);
  return order == NormOrder::CastThenScale ? normed * weight_D : normed * (1 + weight_D);
}

}  // namespace convoy::kernels::reference
