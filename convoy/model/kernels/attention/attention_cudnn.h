// SPDX-License-Identifier: Apache-2.0
//
// cuDNN's attention through LibTorch's op: bf16, heads of up to 128 features, no window.
#pragma once

#include <ATen/core/Tensor.h>

#include "convoy/model/kernels/attention/attention_ops.h"

namespace convoy::kernels {

// The widest heads that cuDNN's attention takes; widths are multiples of 8 features.
inline constexpr int64_t kWidestCudnnHead = 128;

bool takes_cudnn(const at::Tensor& q_THE, const AttentionConfig& config);

AttentionOutput cudnn_forward(const at::Tensor& q_THE, const at::Tensor& k_TKE,
                              const at::Tensor& v_TKE, const RowIndex& rows,
                              const AttentionConfig& config);
AttentionGradients cudnn_backward(const at::Tensor& grad_THE, const at::Tensor& q_THE,
                                  const at::Tensor& k_TKE, const at::Tensor& v_TKE,
                                  const AttentionOutput& output, const RowIndex& rows,
                                  const AttentionConfig& config);

}  // namespace convoy::kernels
