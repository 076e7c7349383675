// SPDX-License-Identifier: Apache-2.0
//
// Attention by batched products, a block of queries at a time, so that no more than the scores of
// one block exist. Runs on any device, and computes what a device's own kernels do not accept: some
// types and head widths, and soft caps.
#pragma once

#include "convoy/model/kernels/attention/attention_ops.h"

namespace convoy::kernels::blockwise {

AttentionOutput forward(const at::Tensor& q_THE, const at::Tensor& k_TKE, const at::Tensor& v_TKE,
                        const RowIndex& rows, const AttentionConfig& config);
AttentionGradients backward(const at::Tensor& grad_THE, const at::Tensor& q_THE,
                            const at::Tensor& k_TKE, const at::Tensor& v_TKE,
                            const AttentionOutput& output, const RowIndex& rows,
                            const AttentionConfig& config);
at::Tensor cached(const at::Tensor& q_THE, const std::vector<CachedRow>& cached,
                  const RowIndex& rows, const AttentionConfig& config);

}  // namespace convoy::kernels::blockwise
