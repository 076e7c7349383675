// SPDX-License-Identifier: Apache-2.0
//
// Dropout whose mask is a function of a key and of the place of the element: the same on every
// device, in every order of calls and when a block runs again in backward. No mask is stored.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace convoy::kernels {

// x / (1 - p) where an element is kept, else 0; each is dropped with probability p, to 2^-32.
// Differentiable. `x` contiguous, fp32 or bf16; 0 <= p < 1.
at::Tensor dropout(const at::Tensor& x, double p, uint64_t key);

// dropout() without a record for autograd. The gradient of dropout() is drop() of the gradient.
at::Tensor drop(const at::Tensor& x, double p, uint64_t key);

}  // namespace convoy::kernels
