// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/parallel/gradient_hooks.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include "convoy/core/base/error.h"

namespace convoy::parallel {
namespace {

class TakeGradient : public torch::autograd::PostAccumulateGradHook {
 public:
  TakeGradient(size_t index, const GradientReceiver& receiver)
      : index_(index), receiver_(receiver) {}

  void operator()(const at::Tensor& parameter) override {
    at::Tensor gradient = std::move(parameter.mutable_grad());
    parameter.mutable_grad() = at::Tensor();
    const at::NoGradGuard no_grad;
    receiver_(index_, std::move(gradient));
  }

 private:
  size_t index_;
  const GradientReceiver& receiver_;
};

}  // namespace

bool gives_gradient_away(const at::Tensor& tensor) {
  return tensor.is_leaf() && tensor.requires_grad() &&
         dynamic_cast<TakeGradient*>(torch::autograd::impl::post_acc_grad_hooks(tensor).get()) !=
             nullptr;
}

GradientHooks::GradientHooks(std::vector<at::Tensor> parameters, GradientReceiver receiver)
    : parameters_(std::move(parameters)), receiver_(std::move(receiver)) {
  for (size_t index = 0; index < parameters_.size(); ++index) {
    const at::Tensor& parameter = parameters_[index];
    CONVOY_INVARIANT(parameter.is_leaf() && parameter.requires_grad(),
                     "parameter {} is not a leaf that requires grad", index);
    torch::autograd::impl::set_post_acc_grad_hooks(
        parameter, std::make_unique<TakeGradient>(index, receiver_));
  }
}

GradientHooks::~GradientHooks() {
  for (const at::Tensor& parameter : parameters_)
    torch::autograd::impl::set_post_acc_grad_hooks(parameter, nullptr);
}

}  // namespace convoy::parallel
