// SPDX-License-Identifier: Apache-2.0
//
// Each device implements these functions for frozen_linear.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "convoy/model/kernels/bitsandbytes_weight/bitsandbytes_weight.h"
#include "convoy/model/kernels/integer_weight/integer_weight.h"
#include "convoy/model/kernels/matrix_product/matrix_product.h"

namespace convoy::kernels {

// A weight in the layout of the device's GEMM. Driven by one thread at a time. If `added` is
// defined, a product includes it. If `sum_TI` is defined, the product is added to it, and it is
// returned.
class PackedLinear {
 public:
  virtual ~PackedLinear() = default;
  // Contiguous [T, I] -> [T, O].
  virtual at::Tensor forward(const at::Tensor& x_TI, const ProductTerm& added) = 0;
  // Computes forward(x_TI, {}) before its last rounding, where the device has that: see
  // FrozenLinear::sums().
  virtual at::Tensor sums(const at::Tensor& x_TI) { return forward(x_TI, {}); }
  // The largest of the first `num_outputs` of each row of sums(x_TI): see FrozenLinear::argmax().
  virtual at::Tensor argmax(const at::Tensor& x_TI, int64_t num_outputs);
  // Contiguous [T, O] -> [T, I].
  virtual at::Tensor input_gradient(const at::Tensor& grad_TO, const ProductTerm& added,
                                    const at::Tensor& sum_TI) = 0;
};

struct FrozenLinearOps {
  // `bias_O` may be undefined.
  std::shared_ptr<PackedLinear> (*pack)(const at::Tensor& weight_OI, const at::Tensor& bias_O);
  std::shared_ptr<PackedLinear> (*pack_integer)(const IntegerWeight& weight,
                                                const at::Tensor& bias_O);
  // The packed weight reads the tensors of `weight` in each product.
  std::shared_ptr<PackedLinear> (*pack_bitsandbytes)(const BitsandbytesWeight& weight,
                                                     const at::Tensor& bias_O);
};

const FrozenLinearOps& frozen_linear_ops(at::Device device);  // chosen by registry/op_table.cpp

extern const FrozenLinearOps kFrozenLinearCpu;
extern const FrozenLinearOps kFrozenLinearAten;  // any device
extern const FrozenLinearOps kFrozenLinearCuda;

}  // namespace convoy::kernels
