// SPDX-License-Identifier: Apache-2.0
//
// The short convolution before linear attention: each channel of a token is
// silu(sum over w of weight[w] * input), where the inputs are the channel of the last W tokens of
// the row, the token itself last (torch's conv1d with one group per channel). Rows lie one after
// another without padding and never see each other. Shapes: T tokens of all rows, C channels, W
// taps, V = W - 1, S states.
//
// On CPUs a row's numbers do not depend on its neighbours, on the number of threads, or on how the
// row is cut into passes, to the bit.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "convoy/model/kernels/row_index/row_index.h"

namespace convoy::kernels {

// Returns [T, C] in the dtype of x, fp32 or bf16, which the weight shares; sums in fp32.
// Differentiable in both; saves only its inputs. Inputs before a row's first token are zero. x may
// be columns of a wider tensor.
at::Tensor short_convolution(const at::Tensor& x_TC, const at::Tensor& weight_CW,
                             const RowIndex& rows);

// The same for generation, without gradients. The inputs before row r's first token are
// tails[slots[r]], the oldest first; afterwards the row's last W - 1 inputs are stored there.
// Without slots, row r uses tails[r]. Tails have the dtype of x, and each [V, C] is contiguous. No
// two rows may have the same slot.
at::Tensor short_convolution_with_state(const at::Tensor& x_TC, const at::Tensor& weight_CW,
                                        const RowIndex& rows, const at::Tensor& tails_SVC,
                                        const std::vector<int64_t>& slots = {});

}  // namespace convoy::kernels
