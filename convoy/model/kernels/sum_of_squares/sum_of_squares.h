// SPDX-License-Identifier: Apache-2.0
//
// The square of the norm over many tensors, for clipping.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace convoy::kernels {

// fp64 scalar on the device of `tensors`, which are contiguous fp32 or bf16 of one device; on the
// CPU if there are no tensors. Nothing waits for the device. The same bits for every number of
// threads.
at::Tensor sum_of_squares(const std::vector<at::Tensor>& tensors);

}  // namespace convoy::kernels
