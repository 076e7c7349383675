// SPDX-License-Identifier: Apache-2.0
//
// x @ W^T with a weight that never changes: packed once for the GEMM library, no autograd graph
// over it, and its gradient is never computed. Shapes: [..., I] to [..., O].
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

namespace convoy::kernels {

class PackedLinear;

// Copies share the packed weight, which lives as long as a copy or a graph that wants it.
class FrozenLinear {
 public:
  // `weight_OI` fp32 or bf16, contiguous, must not change afterwards; `bias_O` may be undefined.
  FrozenLinear(const at::Tensor& weight_OI, const at::Tensor& bias_O);

  // Differentiable in x only.
  at::Tensor forward(const at::Tensor& x) const;
  // grad [..., O] -> [..., I]: what forward's backward computes, for ops that fuse it.
  at::Tensor input_gradient(const at::Tensor& grad) const;

 private:
  std::shared_ptr<PackedLinear> packed_;
};

}  // namespace convoy::kernels
