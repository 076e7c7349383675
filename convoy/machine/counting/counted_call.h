// SPDX-License-Identifier: Apache-2.0
//
// One call of an op for which the counting device has no kernel of its own: the sizes of its
// results, and an entry of the work.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

namespace convoy::counting {

bool is_counted(const at::Tensor& tensor);

// A boxed kernel: takes the arguments from the stack and leaves the results there.
void count_op(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace convoy::counting
