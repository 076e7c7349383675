// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/parallel/replicate/replicate.h"

#include "convoy/core/base/error.h"
#include "convoy/machine/device/refillable_tensor.h"
#include "convoy/train/parallel/trained_parameters.h"

namespace convoy::parallel {

Replicate::Replicate(comm::Group& group) : group_(group) {
  if (group.size() != 1)
    throw ConfigError(
        fmt::format("parallel.strategy `none` runs on one rank, found {} ranks", group.size()),
        {.key = "parallel.strategy", .hint = "use auto or ddp"});
}

void Replicate::prepare(std::vector<nn::Unit> units) {
  CONVOY_INVARIANT(hooks_ == nullptr, "prepare() called twice");
  std::vector<at::Tensor> values;
  for (const nn::NamedTensor& parameter : trained_of(units)) {
    values.push_back(parameter.value);
    // Each gradient of backward brings its own memory, so the shard has none before.
    shards_.push_back(whole_shard(
        parameter, device::tensor_without_memory(parameter.value.sizes(),
                                                 parameter.value.options().dtype(at::kFloat))));
  }
  touched_.assign(shards_.size(), false);
  hooks_ = std::make_unique<GradientHooks>(
      std::move(values),
      [this](size_t index, at::Tensor gradient) { add(index, std::move(gradient)); });
}

void Replicate::add(size_t index, at::Tensor gradient) {
  const bool is_alone = is_last_ && micro_batches_ == 1;
  at::Tensor& sum = shards_[index].gradient;
  if (touched_[index])  // by an earlier micro-batch, or by another use in this one
    sum.set_data(sum.to(at::kFloat).add_(gradient));
  else
    sum.set_data((is_alone ? gradient : gradient.to(at::kFloat)).detach().contiguous());
  touched_[index] = true;
}

void Replicate::begin_micro_batch(MicroBatch which) {
  ++micro_batches_;
  is_last_ = which == MicroBatch::Last;
}

void Replicate::finish_gradients() {
  for (size_t index = 0; index < shards_.size(); ++index)
    if (!touched_[index])
      shards_[index].gradient.set_data(at::zeros_like(shards_[index].value.detach()));
}

void Replicate::finish_step() {
  for (ParameterShard& shard : shards_)
    shard.gradient.set_data(at::empty({0}, shard.gradient.options()));
  micro_batches_ = 0;
  touched_.assign(touched_.size(), false);
}

}  // namespace convoy::parallel
