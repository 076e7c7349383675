// SPDX-License-Identifier: Apache-2.0
//
// Each device implements these functions for sample_tokens. Arguments are checked.
#pragma once

#include "convoy/model/kernels/sampler/sampler.h"

namespace convoy::kernels {

struct SamplerOps {
  std::vector<SampledToken> (*sample)(const at::Tensor& logits_RV, int64_t num_ids,
                                      std::span<const SamplingRow> rows);
};

extern const SamplerOps kSamplerCpu;
extern const SamplerOps kSamplerAten;  // any device
extern const SamplerOps kSamplerCuda;

}  // namespace convoy::kernels
