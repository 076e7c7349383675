// SPDX-License-Identifier: Apache-2.0
//
// Each device implements these functions for sample_tokens. Arguments are checked; all tensors lie
// on the device.
#pragma once

#include "convoy/kernels/sampler/sampler.h"

namespace convoy::kernels {

struct SamplerOps {
  at::Tensor (*sample)(const at::Tensor& logits_RV, int64_t num_ids, const SamplingRule& rule,
                       const at::Tensor& uniform_R);
};

extern const SamplerOps kSamplerCpu;
extern const SamplerOps kSamplerAten;  // any device

}  // namespace convoy::kernels
