// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/parallel/ddp/grad_reducer.h"

#include <map>

#include "convoy/core/base/error.h"
#include "convoy/train/parallel/ddp/bucket_plan.h"

namespace convoy::parallel {

namespace {

// Buckets with gradients of several types, split.
std::vector<std::vector<size_t>> of_one_type(const std::vector<std::vector<size_t>>& buckets,
                                             const std::vector<at::Tensor>& gradients) {
  std::vector<std::vector<size_t>> split;
  for (const std::vector<size_t>& bucket : buckets) {
    std::map<at::ScalarType, std::vector<size_t>> by_type;
    for (const size_t index : bucket) by_type[gradients[index].scalar_type()].push_back(index);
    for (auto& [type, members] : by_type) split.push_back(std::move(members));
  }
  return split;
}

}  // namespace

struct GradReducer::Bucket {
  at::Tensor flat;
  at::Tensor sent;  // `flat` in the type that is sent; `flat` itself where the types are the same
  size_t members = 0;
  size_t pending = 0;  // members not yet ready
  std::unique_ptr<comm::Work> work;
};

GradReducer::GradReducer(comm::Group& group, std::vector<at::Tensor> gradients,
                         const std::vector<size_t>& ready_order, int64_t bucket_bytes,
                         std::optional<at::ScalarType> wire)
    : group_(group), wire_(wire), bucket_of_(gradients.size()), ready_(gradients.size(), false) {
  std::vector<int64_t> bytes;
  for (const at::Tensor& gradient : gradients)
    bytes.push_back(static_cast<int64_t>(gradient.nbytes()));
  for (const std::vector<size_t>& members :
       of_one_type(plan_buckets(ready_order, bytes, bucket_bytes), gradients)) {
    Bucket& bucket = buckets_.emplace_back();
    bucket.members = bucket.pending = members.size();
    int64_t total = 0;
    for (const size_t index : members) total += gradients[index].numel();
    bucket.flat = at::empty({total}, gradients[members.front()].options());
    int64_t offset = 0;
    for (const size_t index : members) {
      at::Tensor& gradient = gradients[index];
      const at::Tensor place =
          bucket.flat.narrow(0, offset, gradient.numel()).view(gradient.sizes());
      place.copy_(gradient);
      gradient.set_(place);
      bucket_of_[index] = buckets_.size() - 1;
      offset += gradient.numel();
    }
  }
}

GradReducer::~GradReducer() = default;

void GradReducer::mark_ready(size_t index) {
  CONVOY_INVARIANT(!ready_.at(index), "gradient {} marked ready twice in one step", index);
  ready_[index] = true;
  --buckets_[bucket_of_[index]].pending;
  // Ranks may complete buckets in different orders. Sending in plan order keeps the collectives
  // matched.
  while (next_ < buckets_.size() && buckets_[next_].pending == 0) send(buckets_[next_++]);
}

void GradReducer::send(Bucket& bucket) {
  bucket.sent = wire_ ? bucket.flat.to(*wire_) : bucket.flat;
  bucket.work = group_.start_all_reduce_sum(bucket.sent);
}

void GradReducer::finish_step() {
  CONVOY_INVARIANT(next_ == buckets_.size(), "{} of {} buckets were not sent",
                   buckets_.size() - next_, buckets_.size());
  for (Bucket& bucket : buckets_) {
    bucket.work->wait();
    bucket.work.reset();
    if (!bucket.sent.is_same(bucket.flat)) bucket.flat.copy_(bucket.sent);
    bucket.sent = at::Tensor();
    bucket.pending = bucket.members;
  }
  std::fill(ready_.begin(), ready_.end(), false);
  next_ = 0;
}

}  // namespace convoy::parallel
