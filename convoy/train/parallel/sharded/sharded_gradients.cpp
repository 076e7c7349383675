// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/parallel/sharded/sharded_gradients.h"

#include <ATen/ATen.h>

#include "convoy/core/base/error.h"

namespace convoy::parallel {
namespace {

// The most whole gradients whose sums are under way. More would take the memory that sharding
// saves.
constexpr size_t kMostUnderWay = 2;

// The type and place of a whole gradient: on the device that computes, even when this rank's piece
// of the values lies elsewhere. fp64 stays fp64, other types become fp32; complex types stay
// complex.
at::TensorOptions wide(FlatUnit& flat) {
  const at::Tensor& whole = flat.parameters.whole().flat();
  const bool is_double = c10::toRealValueType(whole.scalar_type()) == at::kDouble;
  const at::ScalarType real = is_double ? at::kDouble : at::kFloat;
  return whole.options().dtype(whole.is_complex() ? c10::toComplexType(real) : real);
}

}  // namespace

ShardedGradients::ShardedGradients(const GradientRanks& ranks,
                                   std::vector<std::shared_ptr<FlatUnit>> flats,
                                   std::optional<at::ScalarType> wire,
                                   std::function<void(size_t)> when_summed,
                                   WhenArrived when_arrived)
    : ranks_(ranks),
      wire_(wire),
      when_summed_(std::move(when_summed)),
      when_arrived_(std::move(when_arrived)) {
  std::vector<at::Tensor> parameters;
  for (std::shared_ptr<FlatUnit>& flat : flats) {
    const std::vector<FlatRange>& ranges = flat->parameters.ranges();
    for (size_t range = 0; range < ranges.size(); ++range) {
      leaves_.push_back({slots_.size(), range});
      parameters.push_back(ranges[range].parameter.value);
    }
    const at::Tensor own = at::zeros({flat->parameters.piece_numel()}, wide(*flat));
    slots_.push_back(
        {.flat = std::move(flat), .touched = std::vector<bool>(ranges.size()), .own = own});
  }
  hooks_ = std::make_unique<GradientHooks>(
      std::move(parameters),
      [this](size_t leaf, const at::Tensor& gradient) { receive(leaf, gradient); });
}

void ShardedGradients::receive(size_t leaf, const at::Tensor& gradient) {
  if (when_arrived_) when_arrived_(gradient);
  const auto [index, range_index] = leaves_[leaf];
  Slot& slot = slots_[index];
  const FlatRange& range = slot.flat->parameters.ranges()[range_index];
  CONVOY_INVARIANT(index + sent_ < slots_.size(), "the gradient of {} came after it was sent",
                   range.parameter.name);
  if (!slot.whole.defined())
    slot.whole = at::zeros({slot.flat->parameters.numel()}, wide(*slot.flat));
  const at::Tensor held = slot.whole.narrow(0, range.begin, range.numel).view(range.shape);
  if (slot.touched[range_index])
    held.add_(gradient);
  else
    held.copy_(gradient);
  slot.touched[range_index] = true;
  ++slot.arrived;
  if (sums_ != GradientSums::None) send_what_is_ready();
}

void ShardedGradients::send_what_is_ready() {
  while (sent_ < slots_.size()) {
    const Slot& next = slots_[slots_.size() - 1 - sent_];
    if (next.arrived < next.touched.size()) return;
    send(slots_.size() - 1 - sent_);
  }
}

void ShardedGradients::send(size_t index) {
  while (under_way_.size() >= kMostUnderWay) collect_oldest();
  Slot& slot = slots_[index];
  if (!slot.whole.defined())
    slot.whole = at::zeros({slot.flat->parameters.numel()}, wide(*slot.flat));
  const at::Tensor sent = as_sent(slot.whole);
  if (!sent.is_same(slot.whole)) slot.whole = at::Tensor();
  const bool is_own = !slot.summed && sent.scalar_type() == slot.own.scalar_type();
  const at::Tensor sum = is_own ? slot.own : at::empty({slot.own.numel()}, sent.options());
  under_way_.push_back(
      {.slot = index, .sum = sum, .work = ranks_.sharing.start_reduce_scatter_sum(sent, sum)});
  ++sent_;
}

at::Tensor ShardedGradients::as_sent(const at::Tensor& values) const {
  return wire_ ? values.to(*wire_) : values;
}

void ShardedGradients::collect_oldest() {
  const Reduction oldest = std::move(under_way_.front());
  under_way_.pop_front();
  oldest.work->wait();
  Slot& slot = slots_[oldest.slot];
  if (slot.summed)
    slot.own.add_(oldest.sum);
  else if (!oldest.sum.is_same(slot.own))
    slot.own.copy_(oldest.sum);
  slot.summed = true;
  slot.whole = at::Tensor();
  slot.touched.assign(slot.touched.size(), false);
  if (sums_ != GradientSums::All) return;
  if (ranks_.replicas != nullptr)
    send_to_replicas(oldest.slot);
  else
    end_sum(oldest.slot);
}

void ShardedGradients::send_to_replicas(size_t slot) {
  const at::Tensor sent = as_sent(slots_[slot].own);
  replica_sums_.push_back(
      {.slot = slot, .sent = sent, .work = ranks_.replicas->start_all_reduce_sum(sent)});
}

void ShardedGradients::end_sum(size_t slot) {
  if (when_summed_) when_summed_(slot);
}

void ShardedGradients::end_pass() {
  if (sums_ != GradientSums::None)
    while (sent_ < slots_.size()) send(slots_.size() - 1 - sent_);
  while (!under_way_.empty()) collect_oldest();
  for (const ReplicaSum& sum : replica_sums_) {
    sum.work->wait();
    const at::Tensor& own = slots_[sum.slot].own;
    if (!sum.sent.is_same(own)) own.copy_(sum.sent);
    end_sum(sum.slot);
  }
  replica_sums_.clear();
  for (Slot& slot : slots_) slot.arrived = 0;
  sent_ = 0;
  sums_ = GradientSums::None;
}

void ShardedGradients::reset() {
  for (Slot& slot : slots_) slot.summed = false;
}

}  // namespace convoy::parallel
