// SPDX-License-Identifier: Apache-2.0
//
// The tensors that an optimizer of one rank's pieces gets. They compute like other tensors. Code
// that makes one number of all parameters, such as torch::nn::utils::clip_grad_norm_ and LBFGS, is
// refused, because it would get another number on each rank.
#pragma once

#include <ATen/core/Tensor.h>

namespace convoy::detail {

// A tensor with the elements and the memory of `values`. Its norms, its largest absolute value and
// its concatenation with other tensors (cat) throw ConfigError. All other operators return plain
// tensors.
at::Tensor as_piece(const at::Tensor& values);

}  // namespace convoy::detail
