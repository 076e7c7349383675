// SPDX-License-Identifier: Apache-2.0
#include "convoy/kernels/frozen_linear/frozen_linear.h"

namespace convoy::kernels {

struct FrozenLinear::State {
  at::Tensor weight_OI;
  at::Tensor bias_O;
};

FrozenLinear::FrozenLinear(const at::Tensor& weight_OI, const at::Tensor& bias_O)
    : state_(std::make_shared<State>(State{weight_OI.detach(), bias_O.defined() ? bias_O.detach() : bias_O})) {}
FrozenLinear::~FrozenLinear() = default;
FrozenLinear::FrozenLinear(FrozenLinear&&) noexcept = default;

at::Tensor FrozenLinear::forward(const at::Tensor& x) const {
  return at::linear(x, state_->weight_OI, state_->bias_O.defined() ? std::optional(state_->bias_O) : std::nullopt);
}

at::Tensor FrozenLinear::input_gradient(const at::Tensor& grad) const {
  return at::matmul(grad, state_->weight_OI);
}

}  // namespace convoy::kernels
