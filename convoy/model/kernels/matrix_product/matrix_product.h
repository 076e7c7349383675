// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices of one type, fp32 or bf16, summed in fp32. Shapes: M rows, K inner, N
// columns; T tokens, I inputs, O outputs.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace convoy::kernels {

// Either matrix may be the transposed view of a contiguous matrix: no copy is made of it.
struct ProductTerm {
  at::Tensor a_MK;
  at::Tensor b_KN;
};

struct ProductOptions {
  at::Tensor bias_N = {};  // in the terms' type
  double factor = 1.0;     // multiplies the sum with its bias
  bool wide = false;       // the result in fp32, else in the type of the terms
  at::Tensor into = {};    // [M, N], rows may have a stride: takes the result
};

// factor * (bias + sum of a b), [M, N]. Not differentiable.
at::Tensor matrix_product(const std::vector<ProductTerm>& terms,
                          const ProductOptions& options = {});

// x @ W^T + bias with a weight that trains, [..., I] to [..., O]. Differentiable in all three;
// `bias_O` may be undefined. See frozen_linear.h for weights that do not change.
at::Tensor trained_linear(const at::Tensor& x, const at::Tensor& weight_OI,
                          const at::Tensor& bias_O);

// The same for several weights and one x. The gradient of x is added up within the products, which
// saves passes over it.
struct TrainedMap {
  at::Tensor weight_OI;
  at::Tensor bias_O;
};
std::vector<at::Tensor> trained_linears(const at::Tensor& x, const std::vector<TrainedMap>& maps);

}  // namespace convoy::kernels
