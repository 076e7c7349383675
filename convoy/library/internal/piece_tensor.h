// SPDX-License-Identifier: Apache-2.0
//
// The tensors that an optimizer of one rank's pieces sees. They compute as any others, but code
// that makes one number of all parameters, such as torch::nn::utils::clip_grad_norm_ and LBFGS,
// would find another on each rank, and is refused.
#pragma once

#include <ATen/core/Tensor.h>

namespace convoy::detail {

// The same elements as `values`, with the same memory. Norms of it, its largest absolute value and
// its place in a vector of several (cat) throw ConfigError; all else gives plain tensors.
at::Tensor as_piece(const at::Tensor& values);

}  // namespace convoy::detail
