// SPDX-License-Identifier: Apache-2.0
//
// What a device does for frozen_linear.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

namespace convoy::kernels {

// A weight as the device's GEMM wants it. Driven by one thread at a time.
class PackedLinear {
 public:
  virtual ~PackedLinear() = default;
  virtual at::Tensor forward(const at::Tensor& x) = 0;            // contiguous [..., I] -> [..., O]
  virtual at::Tensor input_gradient(const at::Tensor& grad) = 0;  // contiguous [..., O] -> [..., I]
};

struct FrozenLinearOps {
  // `bias_O` may be undefined.
  std::shared_ptr<PackedLinear> (*pack)(const at::Tensor& weight_OI, const at::Tensor& bias_O);
};

extern const FrozenLinearOps kFrozenLinearCpu;
extern const FrozenLinearOps kFrozenLinearAten;  // any device

}  // namespace convoy::kernels
