// SPDX-License-Identifier: Apache-2.0
//
// Picks the next token of every row. Random numbers come from counters, not from a generator's
// state, so a row's text does not depend on which rows it is generated with. Thread-safe.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "convoy/kernels/sampler/sampler.h"

namespace convoy::generate {

struct SamplerConfig {
  double temperature = 1.0;  // 0: the most likely token
  int64_t top_k = 0;         // most likely tokens kept; 0 = all
  double top_p = 1.0;        // smallest set of most likely tokens with at least this share
  uint64_t seed = 0;

  kernels::SamplingRule rule() const {
    return {.temperature = temperature, .top_k = top_k, .top_p = top_p};
  }
};

// Which draw this is.
struct DrawPoint {
  int64_t row = 0;  // index of the prompt
  int64_t sample = 0;
  int64_t position = 0;  // index of the new token
};

// One token per row of logits_RV (fp32 or bf16), of the ids below `num_ids`: leave out the padded
// rows of a vocabulary. Throws NumericError where the logits of a row are not finite. See
// kernels::sample_tokens.
std::vector<int32_t> sample_tokens(const at::Tensor& logits_RV, int64_t num_ids,
                                   const SamplerConfig& config,
                                   const std::vector<DrawPoint>& points);

}  // namespace convoy::generate
