// SPDX-License-Identifier: Apache-2.0
//
// How the numbers of several ranks become one.
#pragma once

#include <ATen/core/Tensor.h>

namespace convoy::comm {

// Max and Min are for real numbers. Whether their result is NaN when an operand is NaN depends on
// the library that compares.
enum class Reduction { Sum, Max, Min };

// `out` [n] becomes the reduction of `rows` [ranks, n], of one type. Without gradients.
void reduce_rows(at::Tensor out, const at::Tensor& rows, Reduction reduction);

}  // namespace convoy::comm
