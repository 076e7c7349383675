// SPDX-License-Identifier: Apache-2.0
//
// x @ W^T with a weight that never changes. The weight is packed for products where that pays. It
// is in no autograd graph, and its gradient is never computed. Shapes: [..., I] to [..., O]; T
// tokens.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "convoy/model/kernels/bitsandbytes_weight/bitsandbytes_weight.h"
#include "convoy/model/kernels/integer_weight/integer_weight.h"
#include "convoy/model/kernels/matrix_product/matrix_product.h"

namespace convoy::kernels {

class PackedLinear;

// Copies share the weight and its packed copy, which live as long as a copy or a graph that uses
// them.
class FrozenLinear {
 public:
  // `weight_OI` fp32 or bf16, contiguous, must not change afterwards (its memory may be freed and
  // restored around release_packed()); `bias_O` may be undefined.
  FrozenLinear(const at::Tensor& weight_OI, const at::Tensor& bias_O);

  // Holds no other copy of the weight. Products dequantise a part of it at a time. x, sums and
  // result have the types that a plain weight of its dtype gives them.
  FrozenLinear(const IntegerWeight& weight, const at::Tensor& bias_O);

  // The same for a weight in bitsandbytes' formats. The memory of its tensors may be freed and
  // restored, too: each product reads them, and rounds their values at most once, to the type of x.
  FrozenLinear(const BitsandbytesWeight& weight, const at::Tensor& bias_O);

  // Frees the packed copy; the next product packs the weight's current values. A quantised or coded
  // weight has no other form than its packed one, which stays.
  void release_packed();

  // Differentiable in x only.
  at::Tensor forward(const at::Tensor& x) const;

  // The products alone, for ops that fuse more into them: x W^T + bias and grad W, plus `added`
  // where it is defined.
  at::Tensor product(const at::Tensor& x_TI, const ProductTerm& added = {}) const;
  // `sum_TI`: the gradient is added to it, and it is returned; undefined: the gradient is returned.
  at::Tensor input_gradient(const at::Tensor& grad_TO, const ProductTerm& added = {},
                            const at::Tensor& sum_TI = {}) const;

  // x W^T + bias as the device sums it: fp32 on CPUs, in x's type elsewhere. Not differentiable.
  at::Tensor sums(const at::Tensor& x_TI) const;

  // int64 [T]: for each token the index of the largest of the first `num_outputs` of sums(). Of
  // equal sums the first counts; -1 where the largest sum is not finite or a sum is NaN. On the CPU
  // the product is never stored. Not differentiable.
  at::Tensor argmax(const at::Tensor& x_TI, int64_t num_outputs) const;

 private:
  struct Weight {
    at::Tensor weight_OI;  // undefined when quantised or coded
    at::Tensor bias_O;
    std::shared_ptr<PackedLinear> packed;  // null until it is used
  };
  PackedLinear& packed() const;

  std::shared_ptr<Weight> weight_;
};

}  // namespace convoy::kernels
