// SPDX-License-Identifier: Apache-2.0
//
// Each device implements these functions for pick_tokens. Arguments are checked.
#pragma once

#include "convoy/model/kernels/sampler/sampler.h"

namespace convoy::kernels {

struct SamplerOps {
  SamplingTables (*make_tables)(std::span<const SamplingRow> rows, int64_t num_ids,
                                device::Upload& upload);
  PickedTokens (*pick)(const at::Tensor& logits_RV, int64_t num_ids,
                       std::span<const SamplingRow> rows, const SamplingTables& tables,
                       const at::Tensor& unread_ids);
  bool reads_allowed_rows;  // `pick` needs no tables of allowed ids
};

const SamplerOps& sampler_ops(at::Device device);  // chosen by registry/op_table.cpp

extern const SamplerOps kSamplerCpu;
extern const SamplerOps kSamplerAten;  // any device
extern const SamplerOps kSamplerCuda;

}  // namespace convoy::kernels
