// SPDX-License-Identifier: Apache-2.0
//
// Picks the next token of every row of logits. Rows do not see each other, so what one gets does
// not depend on its neighbours. Random numbers are given, so an op is a pure function. Shapes: R
// rows, V logits of a row.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace convoy::kernels {

// In transformers' order: repetition penalty, temperature, top-k, top-p, min-p. Equal logits prefer
// the lower id.
struct SamplingRule {
  double temperature = 1.0;  // 0: the most likely id
  int64_t top_k = 0;         // most likely ids kept; 0 = all
  double top_p = 1.0;  // of these, the smallest set of most likely ones with at least this share
  double min_p = 0.0;  // of these, those with at least this share of the most likely one's
  double repetition_penalty = 1.0;  // divides logits of seen ids; multiplies negative ones
};

// The token of a row whose logits are not finite: a NaN anywhere, or an infinite largest value.
inline constexpr int64_t kNoToken = -1;

struct SamplingRow {
  SamplingRule rule;
  double uniform = 0;  // in [0, 1): a place in the distribution of the ids kept, by id
  std::span<const int32_t> seen_ids = {};  // in any order; those that repeat count once
  bool wants_logprob = false;
  int64_t num_likeliest = 0;  // with wants_logprob: as many of the most likely ids as well
};

// log(softmax) of the row's logits as they came, before penalty and temperature.
struct TokenLogprob {
  int64_t id = 0;
  float logprob = 0;
};

struct SampledToken {
  int64_t id = kNoToken;
  float logprob = 0;                    // when requested
  std::vector<TokenLogprob> likeliest;  // by falling likelihood; none of no likelihood
};

// One per row of `logits_RV`: fp32 or bf16, rows contiguous; ids below `num_ids` may be picked, and
// only they count. Sums in fp32 or wider. Blocks until the ids are on the host. Not differentiable.
std::vector<SampledToken> sample_tokens(const at::Tensor& logits_RV, int64_t num_ids,
                                        std::span<const SamplingRow> rows);

}  // namespace convoy::kernels
