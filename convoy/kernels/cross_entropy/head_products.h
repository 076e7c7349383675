// SPDX-License-Identifier: Apache-2.0
//
// The matrix products of linear_cross_entropy through ATen, over chunks of rows whose logits exist
// at a time.
#pragma once

#include <ATen/core/Tensor.h>

namespace convoy::kernels {

// Rows whose fp32 logits take 256 MiB, and 4,096 at most.
int64_t logit_rows_per_chunk(int64_t vocab);

// Products of two tensors of the model's type with sums and result in fp32.
struct WideProducts {
  at::Tensor (*multiply)(const at::Tensor& a, const at::Tensor& b);
  void (*add_product)(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b);
};

// The fastest that the tensor's device has.
const WideProducts& wide_products(const at::Tensor& tensor);

}  // namespace convoy::kernels
