// SPDX-License-Identifier: Apache-2.0
//
// Noise whose values are a function of a key and of their place: the same on every device and in
// every order of calls.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "convoy/model/kernels/row_index/row_index.h"

namespace convoy::kernels {

// NEFTune (arXiv 2310.05914): x_TD plus uniform noise in +-alpha / sqrt(tokens of the row * D). A
// batch may have several rows; the noise of each row depends on its own number of tokens.
// Differentiable; alpha > 0. `x_TD` fp32 or bf16.
at::Tensor add_row_noise(const at::Tensor& x_TD, const RowIndex& rows, double alpha, uint64_t key);

}  // namespace convoy::kernels
