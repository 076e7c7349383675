// SPDX-License-Identifier: Apache-2.0
//
// Picks the next token. Random numbers come from counters, not from a generator's state, so a row's text does not depend
// on which rows it is generated with. Thread-safe.
#pragma once

#include <cstdint>
#include <span>

namespace convoy::generate {

struct SamplerConfig {
  double temperature = 1.0;  // 0: the most likely token
  int64_t top_k = 0;         // most likely tokens kept; 0 = all
  double top_p = 1.0;        // smallest set of most likely tokens with at least this share
  uint64_t seed = 0;
};

// Which draw this is.
struct DrawPoint {
  int64_t row = 0;  // index of the prompt
  int64_t sample = 0;
  int64_t position = 0;  // index of the new token
};

// `logits`: one per id that may be picked; leave out the padded rows of a vocabulary. Temperature,
// then top-k, then top-p, in transformers' order; equal logits prefer the lower id. Throws NumericError on NaN.
int32_t sample_token(std::span<const float> logits, const SamplerConfig& config,
                     const DrawPoint& point);

}  // namespace convoy::generate
