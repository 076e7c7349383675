// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/parallel/ddp/ddp.h"

#include <algorithm>

#include "convoy/core/base/error.h"
#include "convoy/train/parallel/same_parameters.h"
#include "convoy/train/parallel/trained_parameters.h"

namespace convoy::parallel {

Ddp::Ddp(comm::Group& group, int64_t bucket_bytes, std::optional<at::ScalarType> wire)
    : group_(group), bucket_bytes_(bucket_bytes), wire_(wire), buffers_(group) {}

void Ddp::prepare(std::vector<nn::Unit> units) {
  CONVOY_INVARIANT(hooks_ == nullptr, "prepare() called twice");
  const std::vector<nn::NamedTensor> parameters = trained_of(units);
  check_same_parameters(group_, parameters);
  broadcast_values(group_, parameters);
  buffers_.add(units);
  std::vector<at::Tensor> values;
  for (const nn::NamedTensor& parameter : parameters) {
    values.push_back(parameter.value);
    shards_.push_back(whole_shard(
        parameter,
        at::empty(parameter.value.sizes(), parameter.value.options().dtype(at::kFloat))));
  }
  touched_.assign(values.size(), false);
  hooks_ = std::make_unique<GradientHooks>(
      std::move(values),
      [this](size_t index, const at::Tensor& gradient) { add(index, gradient); });
}

void Ddp::add(size_t index, const at::Tensor& gradient) {
  CONVOY_INVARIANT(!reducer_ || !reducer_->is_ready(index), "gradient {} came after it was sent",
                   index);
  if (touched_[index]) {
    shards_[index].gradient.add_(gradient);
  } else {
    shards_[index].gradient.copy_(gradient);
    if (!reducer_) arrivals_.push_back(index);
  }
  touched_[index] = true;
  if (reducer_ && last_) reducer_->mark_ready(index);
}

void Ddp::begin_micro_batch(MicroBatch which) { last_ = which == MicroBatch::Last; }

void Ddp::lay_out_buckets() {
  std::vector<bool> arrived(shards_.size(), false);
  for (const size_t index : arrivals_) arrived[index] = true;
  for (size_t index = shards_.size(); index-- > 0;)
    if (!arrived[index]) arrivals_.push_back(index);  // used by no row of the first step
  at::Tensor order = at::empty({static_cast<int64_t>(arrivals_.size())}, at::kLong);
  std::copy(arrivals_.begin(), arrivals_.end(), order.mutable_data_ptr<int64_t>());
  group_.broadcast(order, 0);
  const int64_t* agreed = order.const_data_ptr<int64_t>();
  reducer_ = std::make_unique<GradReducer>(group_, gradients_of(shards_),
                                           std::vector<size_t>(agreed, agreed + order.numel()),
                                           bucket_bytes_, wire_);
  arrivals_.clear();
}

void Ddp::finish_gradients() {
  CONVOY_INVARIANT(last_, "finish_gradients() without a last micro-batch");
  if (!reducer_) lay_out_buckets();
  // Marks the remaining parameters as ready: in the first step all parameters, later the parameters
  // without a gradient on this rank, or all if this rank's last micro-batch is empty.
  for (size_t index = 0; index < touched_.size(); ++index) {
    if (!touched_[index]) shards_[index].gradient.zero_();
    if (!reducer_->is_ready(index)) reducer_->mark_ready(index);
  }
  reducer_->finish_step();
  last_ = false;
}

void Ddp::finish_step() {
  touched_.assign(touched_.size(), false);
  buffers_.take_those_of_rank_zero();
}

}  // namespace convoy::parallel
