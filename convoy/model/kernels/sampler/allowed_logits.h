// SPDX-License-Identifier: Apache-2.0
//
// Logits of rows of which only some ids may be picked: the others become -inf, so that everything
// behind - penalties, cuts, shares, log-probabilities - is of the allowed ids alone.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "convoy/model/kernels/sampler/sampler.h"

namespace convoy::kernels {

void add_allowed_tables(std::span<const SamplingRow> rows, device::Upload& upload,
                        SamplingTables& tables);

// `logits_RV` (fp32 or bf16) with -inf in place of ids that a row does not allow; `logits_RV`
// itself where all rows allow all ids. On any device. Async.
at::Tensor allowed_logits(const at::Tensor& logits_RV, const SamplingTables& tables);

}  // namespace convoy::kernels
