// SPDX-License-Identifier: Apache-2.0
//
// sample_tokens() on the CPU, arguments checked.
#pragma once

#include "convoy/kernels/sampler/sampler.h"

namespace convoy::kernels::sampler {

void sample_on_cpu(const at::Tensor& logits_RV, int64_t num_ids, const SamplingRule& rule,
                   const at::Tensor& uniform_R, const at::Tensor& ids_R);

}  // namespace convoy::kernels::sampler
