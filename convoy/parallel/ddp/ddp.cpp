// SPDX-License-Identifier: Apache-2.0
#include "convoy/parallel/ddp/ddp.h"

#include "convoy/base/error.h"
#include "convoy/parallel/agreement.h"

namespace convoy::parallel {

Ddp::Ddp(comm::Group& group, int64_t bucket_bytes) : group_(group), bucket_bytes_(bucket_bytes) {}

void Ddp::prepare(std::vector<TrainableParameter> parameters) {
  CONVOY_INVARIANT(hooks_ == nullptr, "prepare() called twice");
  check_same_parameters(group_, parameters);
  broadcast_values(group_, parameters);
  std::vector<at::Tensor> values;
  std::vector<std::vector<int64_t>> shapes;
  for (const TrainableParameter& parameter : parameters) {
    values.push_back(parameter.value);
    shapes.push_back(parameter.value.sizes().vec());
  }
  reducer_ = std::make_unique<GradReducer>(group_, shapes, bucket_bytes_);
  touched_.assign(values.size(), false);
  hooks_ = std::make_unique<GradientHooks>(
      std::move(values),
      [this](size_t index, const at::Tensor& gradient) { add(index, gradient); });
}

void Ddp::add(size_t index, const at::Tensor& gradient) {
  CONVOY_INVARIANT(!reducer_->is_ready(index), "gradient {} came after it was sent", index);
  const at::Tensor& sum = reducer_->gradients()[index];
  if (touched_[index])
    sum.add_(gradient);
  else
    sum.copy_(gradient);
  touched_[index] = true;
  if (last_) reducer_->mark_ready(index);
}

void Ddp::begin_micro_batch(MicroBatch which) { last_ = which == MicroBatch::Last; }

void Ddp::finish_gradients() {
  CONVOY_INVARIANT(last_, "finish_gradients() without a last micro-batch");
  // Parameters without a gradient on this rank, or whose last micro-batch here was empty. Backward's order, so that
  // full buckets leave as early as they can.
  for (size_t index = touched_.size(); index-- > 0;) {
    if (!touched_[index]) reducer_->gradients()[index].zero_();
    if (!reducer_->is_ready(index)) reducer_->mark_ready(index);
  }
  reducer_->finish_step();
  last_ = false;
}

void Ddp::reset_gradients() { touched_.assign(touched_.size(), false); }

}  // namespace convoy::parallel
