// SPDX-License-Identifier: Apache-2.0
#include "convoy/parallel/replicate/replicate.h"

#include "convoy/base/error.h"

namespace convoy::parallel {

Replicate::Replicate(comm::Group& group) : group_(group) {
  CONVOY_CHECK(group.size() == 1, ConfigError,
               "parallel.strategy `none` runs on one rank, found {} ranks (use auto or ddp)",
               group.size());
}

void Replicate::prepare(std::vector<TrainableParameter> parameters) {
  CONVOY_INVARIANT(hooks_ == nullptr, "prepare() called twice");
  parameters_ = std::move(parameters);
  gradients_.resize(parameters_.size());
  std::vector<at::Tensor> values;
  for (const TrainableParameter& parameter : parameters_) values.push_back(parameter.value);
  hooks_ = std::make_unique<GradientHooks>(
      std::move(values),
      [this](size_t index, at::Tensor gradient) { add(index, std::move(gradient)); });
}

void Replicate::add(size_t index, at::Tensor gradient) {
  at::Tensor& sum = gradients_[index];
  if (sum.defined())
    sum.add_(gradient);
  else
    sum = gradient.to(at::kFloat).contiguous();
}

void Replicate::begin_micro_batch(MicroBatch) {}

void Replicate::finish_gradients() {
  for (size_t index = 0; index < gradients_.size(); ++index)
    if (!gradients_[index].defined())
      gradients_[index] = at::zeros(parameters_[index].value.sizes(), at::kFloat);
}

void Replicate::reset_gradients() {
  for (at::Tensor& gradient : gradients_) gradient.reset();
}

}  // namespace convoy::parallel
