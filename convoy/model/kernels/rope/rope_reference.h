// SPDX-License-Identifier: Apache-2.0
//
// rope as a plain composition of tensor operations, in the dtype it is given: what the fused kernel
// is tested against.
#pragma once

#include "convoy/model/kernels/rope/rope.h"

namespace convoy::kernels::reference {

at::Tensor rope(const at::Tensor& x_THE, const at::Tensor& cos_PE, const at::Tensor& sin_PE,
                const at::Tensor& positions_T);

}  // namespace convoy::kernels::reference
