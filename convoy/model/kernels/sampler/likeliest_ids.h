// SPDX-License-Identifier: Apache-2.0
//
// The most likely ids of rows that ask for them, on any device. Rows that do not ask cost nothing.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "convoy/model/kernels/sampler/sampler.h"

namespace convoy::kernels {

void add_likeliest_tables(std::span<const SamplingRow> rows, device::Upload& upload,
                          SamplingTables& tables);

// Returns PickedTokens::sampled_RS, of which `sampled_R2` has the first pair. `logits_RV`: all
// logits before penalties, fp32 or bf16, of which the first `num_ids` may be picked. Async.
at::Tensor with_likeliest(const at::Tensor& sampled_R2, const at::Tensor& logits_RV,
                          int64_t num_ids, const SamplingTables& tables);

}  // namespace convoy::kernels
