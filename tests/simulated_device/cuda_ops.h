// SPDX-License-Identifier: Apache-2.0
//
// Whether LibTorch's CUDA half has a kernel for an op, by the headers that LibTorch generates for
// each of them, and for a type, by the declarations of PyTorch's tests: so it needs no CUDA.
#pragma once

#include <ATen/core/function_schema.h>

#include <vector>

namespace convoy::simulated {

// Throws c10::Error if CUDA has no kernel for the op, or no kernel for the type of its first
// tensor. `types` holds the types of the op's tensors, in order.
void require_cuda_kernel(const c10::FunctionSchema& schema,
                         const std::vector<c10::ScalarType>& types);

}  // namespace convoy::simulated
