// SPDX-License-Identifier: Apache-2.0
//
// Parameters that the host gives to the kernels of sampler_cuda.cu. Pointers are addresses on the
// GPU.
#pragma once

#include <stdint.h>

namespace convoy::kernels::gpu {

struct SampleRule {
  double uniform = 0;          // in [0, 1)
  double top_p = 1;            // 1 and above: no cut, here and below
  float scale_for_base_2 = 0;  // log2(e) / temperature; 0: the most likely id
  float min_p = 0;
  uint32_t top_k = 0;  // 0: no cut
  uint32_t wants_logprob = 0;
  // A weight relative to the largest one. If every id had it, all ids together would have half of
  // the probability that top_p leaves out.
  float least_log2_weight = 0;
  uint32_t unused = 0;
};

struct SampledId {
  int32_t id = -1;  // -1: the logits are not finite
  float logprob = 0;
};

struct SampleLaunch {
  const void* logits = nullptr;     // logits of the model, unchanged
  const void* penalised = nullptr;  // `logits` where no row is penalised
  const SampleRule* rules = nullptr;
  SampledId* sampled = nullptr;
  int64_t* next_ids = nullptr;  // the sampled ids; 0 where there is none
  int64_t row_stride = 0;       // elements between rows of `logits`
  int64_t penalised_stride = 0;
  uint32_t rows = 0;
  uint32_t ids = 0;      // number of ids that may be picked, the first of the row
  uint32_t columns = 0;  // all logits of a row, over which log-probabilities are normalised
  uint32_t vectors = 0;  // every row may be read by vectors
};

}  // namespace convoy::kernels::gpu
