// SPDX-License-Identifier: Apache-2.0
//
// Each device implements these functions for sum_of_squares.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace convoy::kernels {

struct SumOfSquaresOps {
  at::Tensor (*sum)(const std::vector<at::Tensor>& tensors);  // at least one
};

const SumOfSquaresOps& sum_of_squares_ops(at::Device device);  // chosen by registry/op_table.cpp

extern const SumOfSquaresOps kSumOfSquaresCpu;
extern const SumOfSquaresOps kSumOfSquaresAten;  // any device
extern const SumOfSquaresOps kSumOfSquaresCuda;

}  // namespace convoy::kernels
