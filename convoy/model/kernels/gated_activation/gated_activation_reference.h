// SPDX-License-Identifier: Apache-2.0
//
// gated_activation as a plain composition of tensor operations, in the dtype it is given: what the
// fused kernel is tested against.
#pragma once

#include "convoy/model/kernels/gated_activation/gated_activation.h"

namespace convoy::kernels::reference {

at::Tensor gated_activation(const at::Tensor& gate_TF, const at::Tensor& up_TF,
                            Activation activation);

}  // namespace convoy::kernels::reference
