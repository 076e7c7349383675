// SPDX-License-Identifier: Apache-2.0
//
// Repetition penalties on any device.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "convoy/model/kernels/sampler/sampler.h"

namespace convoy::kernels {

// True where a row's rule changes the logits of the ids that it has seen.
bool penalises(std::span<const SamplingRow> rows);

// `logits_RV` (fp32, contiguous) with the penalties of `rows`, each id of a row once. The tensor
// itself where no row penalises. Async.
at::Tensor penalised_logits(const at::Tensor& logits_RV, std::span<const SamplingRow> rows);

}  // namespace convoy::kernels
