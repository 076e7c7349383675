// SPDX-License-Identifier: Apache-2.0
//
// rms_norm as a plain composition of tensor operations, in the dtype it is given: what the fused
// kernel is tested against (in double) and differentiated by autograd.
#pragma once

#include "convoy/model/kernels/rms_norm/rms_norm.h"

namespace convoy::kernels::reference {

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight_D, double epsilon,
                    NormOrder order);

}  // namespace convoy::kernels::reference
