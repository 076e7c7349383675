// SPDX-License-Identifier: Apache-2.0
//
// Whether LibTorch has a CUDA kernel for an op, and for a type. The headers that LibTorch generates
// tell the ops, and the declarations of PyTorch's tests tell the types, so no CUDA is needed.
#pragma once

#include <ATen/core/function_schema.h>

#include <vector>

namespace convoy::simulated {

// Throws c10::Error if CUDA has no kernel for the op, or no kernel for the type of its first
// tensor. `types` holds the types of the op's tensors, in order.
void require_cuda_kernel(const c10::FunctionSchema& schema,
                         const std::vector<c10::ScalarType>& types);

}  // namespace convoy::simulated
