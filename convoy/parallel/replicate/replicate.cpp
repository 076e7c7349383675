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
  std::vector<at::Tensor> values;
  for (const TrainableParameter& parameter : parameters_) {
    values.push_back(parameter.value);
    gradients_.push_back(
        at::empty(parameter.value.sizes(), parameter.value.options().dtype(at::kFloat)));
  }
  touched_.assign(parameters_.size(), false);
  hooks_ = std::make_unique<GradientHooks>(
      std::move(values),
      [this](size_t index, at::Tensor gradient) { add(index, std::move(gradient)); });
}

void Replicate::add(size_t index, at::Tensor gradient) {
  if (touched_[index])
    gradients_[index].add_(gradient);
  else
    gradients_[index].set_(gradient.to(at::kFloat).contiguous());
  touched_[index] = true;
}

void Replicate::begin_micro_batch(MicroBatch) {}

void Replicate::finish_gradients() {
  for (size_t index = 0; index < gradients_.size(); ++index)
    if (!touched_[index])
      gradients_[index].set_(
          at::zeros(parameters_[index].value.sizes(), gradients_[index].options()));
}

void Replicate::reset_gradients() {
  for (const at::Tensor& gradient : gradients_) gradient.set_(at::empty({0}, gradient.options()));
  touched_.assign(touched_.size(), false);
}

}  // namespace convoy::parallel
