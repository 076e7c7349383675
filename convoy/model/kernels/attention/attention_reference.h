// SPDX-License-Identifier: Apache-2.0
//
// packed_attention as a plain composition of tensor operations, one row after another, in the dtype
// it is given: what the fused kernel is tested against.
#pragma once

#include "convoy/model/kernels/attention/attention.h"

namespace convoy::kernels::reference {

at::Tensor packed_attention(const at::Tensor& q_THE, const at::Tensor& k_TKE,
                            const at::Tensor& v_TKE, const std::vector<int64_t>& row_starts,
                            const AttentionConfig& config);

// One row whose queries are the last q_THE.size(0) positions of its keys.
at::Tensor row_attention(const at::Tensor& q_THE, const at::Tensor& k_SKE, const at::Tensor& v_SKE,
                         const AttentionConfig& config);

}  // namespace convoy::kernels::reference
