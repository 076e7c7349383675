// SPDX-License-Identifier: Apache-2.0
//
// Repetition penalties on any device.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "convoy/model/kernels/sampler/sampler.h"

namespace convoy::kernels {

// The tables of penalties alone.
SamplingTables penalty_tables(std::span<const SamplingRow> rows, int64_t num_ids,
                              device::Upload& upload);

// `logits_RV` (fp32, contiguous) with the penalties of `tables`, each id of a row once. The tensor
// itself where no row penalises. Async.
at::Tensor penalised_logits(const at::Tensor& logits_RV, const SamplingTables& tables,
                            const at::Tensor& unread_ids);

}  // namespace convoy::kernels
