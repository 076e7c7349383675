// SPDX-License-Identifier: Apache-2.0
//
// LibTorch's FlashAttention-2 on CUDA: which tensors it takes, and how it is told a window.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "convoy/model/kernels/attention/attention.h"

namespace convoy::kernels {

// True for bf16 tensors of a GPU, or of the device that counts for it, with at most 256 features,
// in multiples of 8, and with tokens.
bool takes_flash(const at::Tensor& q_THE);

// Keys before the query's own that it sees; std::nullopt: all.
std::optional<int64_t> flash_window(const AttentionConfig& config);

}  // namespace convoy::kernels
