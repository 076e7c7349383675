// SPDX-License-Identifier: Apache-2.0
//
// Picks the next token of every row of logits. Rows do not see each other, so what one gets does not depend on its
// neighbours. Random numbers are given, so an op is a pure function. Shapes: R rows, V logits of a row.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace convoy::kernels {

struct SamplingRule {
  double temperature = 1.0;  // 0: the most likely id
  int64_t top_k = 0;         // most likely ids kept; 0 = all
  double top_p = 1.0;  // of these, the smallest set of most likely ones with at least this share
};

// What a row gets whose logits are not finite: a NaN anywhere, or a largest value that is infinite.
inline constexpr int64_t kNoToken = -1;

// -> int64 [R]. `logits_RV`: fp32 or bf16, rows contiguous; ids below `num_ids` may be picked. `uniform_R`: fp64 in [0, 1).
// Temperature, top-k, top-p, in transformers' order; equal logits prefer the lower id. The number is a place in the
// cumulative distribution, by rank where top-k or top-p leave something out, else by id. Not differentiable.
at::Tensor sample_tokens(const at::Tensor& logits_RV, int64_t num_ids, const SamplingRule& rule,
                         const at::Tensor& uniform_R);

}  // namespace convoy::kernels
