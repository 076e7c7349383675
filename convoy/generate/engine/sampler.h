// SPDX-License-Identifier: Apache-2.0
//
// Picks the next token of every row, each by its own rule. Random numbers come from counters, not
// from a generator's state, so a row's text does not depend on which rows it is generated with. One
// thread per model.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "convoy/model/kernels/sampler/sampler.h"
#include "convoy/model/nn/linear.h"

namespace convoy::generate {

using Sampling = kernels::SamplingRule;

// Throws ConfigError naming the key of a number that is out of range.
void check_sampling(const Sampling& sampling);

// The random numbers that a text is drawn from, together with the position of each token.
struct DrawSource {
  uint64_t seed = 0;
  int64_t row = 0;
  uint64_t sample = 0;
};

struct DrawPoint {
  Sampling sampling = {};
  DrawSource source = {};
  int64_t position = 0;                    // index of the new token
  std::span<const int32_t> seen_ids = {};  // of prompt and answer: for the repetition penalty
  bool wants_logprob = false;
};

// One token per row of logits_RV (fp32 or bf16), of the ids below `num_ids`: leave out the padded
// rows of a vocabulary. kernels::kNoToken where the logits of a row are not finite.
std::vector<kernels::SampledToken> sample_tokens(const at::Tensor& logits_RV, int64_t num_ids,
                                                 const std::vector<DrawPoint>& points);

// The same from the hidden states [R, D] that `head` turns into logits. When only the likeliest
// token is requested, logits are never stored.
std::vector<kernels::SampledToken> next_tokens(const nn::Linear& head, const at::Tensor& hidden_RD,
                                               int64_t num_ids,
                                               const std::vector<DrawPoint>& points);

}  // namespace convoy::generate
