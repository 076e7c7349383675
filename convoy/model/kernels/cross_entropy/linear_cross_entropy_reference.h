// SPDX-License-Identifier: Apache-2.0
//
// linear_cross_entropy with all logits at once, in the dtype it is given: what the chunked kernel
// is tested against.
#pragma once

#include "convoy/model/kernels/cross_entropy/linear_cross_entropy.h"

namespace convoy::kernels::reference {

at::Tensor linear_cross_entropy(const at::Tensor& hidden_TD, const at::Tensor& weight_VD,
                                const at::Tensor& labels_T);

}  // namespace convoy::kernels::reference
