// SPDX-License-Identifier: Apache-2.0
//
// Runs LibTorch's fused kernel over lists of parameters: a few launches for any number of
// parameters.
#include "convoy/model/kernels/adamw/adamw_ops.h"

namespace convoy::kernels {
namespace {

void update(const std::vector<AdamWTensors>& parameters, const AdamWStep& step) {
  std::vector<at::Tensor> values, gradients, means, squares, masters, rounded;
  for (const AdamWTensors& parameter : parameters) {
    values.push_back(parameter.value);
    gradients.push_back(parameter.gradient.to(at::kFloat));
    means.push_back(parameter.exp_avg);
    squares.push_back(parameter.exp_avg_sq);
    if (!parameter.rounded.defined()) continue;
    masters.push_back(parameter.value);
    rounded.push_back(parameter.rounded);
  }
  // The kernel can only divide the gradients by a tensor, and it would store the quotients in them.
  // A multiplication gives the same bits on every device.
  if (step.gradient_scale != 1.0) gradients = at::_foreach_mul(gradients, step.gradient_scale);
  const at::Tensor number = at::full({}, static_cast<double>(step.step), values[0].options());
  const std::vector<at::Tensor> steps(values.size(), number);
  at::_fused_adamw_(values, gradients, means, squares, {}, steps, step.learning_rate, step.beta1,
                    step.beta2, step.weight_decay, step.epsilon, false, false);
  if (!rounded.empty()) at::_foreach_copy_(rounded, masters);
}

}  // namespace

const AdamWOps kAdamWAten = {update, update_narrow_by_aten};

}  // namespace convoy::kernels
