// SPDX-License-Identifier: Apache-2.0
//
// LibTorch's FlashAttention-2 on CUDA: the tensors that it takes, and its form of a window.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "convoy/model/kernels/attention/attention.h"

namespace convoy::kernels {

// True for a tensor with tokens, in bf16, on a GPU or on the device that counts a GPU's work, whose
// heads have at most 256 features, a multiple of 8. LibTorch's kernel has no soft cap on scores.
bool takes_flash(const at::Tensor& q_THE, const AttentionConfig& config);

// The number of keys before its own key that a query sees; std::nullopt: all.
std::optional<int64_t> flash_window(const AttentionConfig& config);

}  // namespace convoy::kernels
