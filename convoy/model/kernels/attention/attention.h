// SPDX-License-Identifier: Apache-2.0
//
// Causal attention over packed rows. Rows lie one after another without padding and never see each
// other. Shapes: T query tokens of all rows, S key tokens of all rows, H query heads, K key/value
// heads (K divides H), E head features.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "convoy/model/kernels/row_index/row_index.h"

namespace convoy::kernels {

// GPUs have two kernels: LibTorch's FlashAttention-2, and cuDNN's. CPUs have one.
enum class AttentionKernel { Flash, Cudnn };

struct AttentionConfig {
  double scale = 1.0;
  // Above 0: query i sees keys i - window + 1 ... i (Hugging Face's rule).
  int64_t sliding_window = 0;
  // Above 0: a scaled score s becomes score_cap * tanh(s / score_cap), before the mask (Gemma 2).
  // GPUs compute such scores blockwise, whatever `kernel` says.
  double score_cap = 0;
  AttentionKernel kernel = AttentionKernel::Flash;
};

// Differentiable in q, k, v, which have one dtype and `rows.num_tokens()` tokens.
at::Tensor packed_attention(const at::Tensor& q_THE, const at::Tensor& k_TKE,
                            const at::Tensor& v_TKE, const RowIndex& rows,
                            const AttentionConfig& config);

}  // namespace convoy::kernels
