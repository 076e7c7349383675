// SPDX-License-Identifier: Apache-2.0
#include "convoy/parallel/ddp/grad_reducer.h"

#include "convoy/base/error.h"
#include "convoy/parallel/ddp/bucket_plan.h"

namespace convoy::parallel {

struct GradReducer::Bucket {
  at::Tensor flat;  // fp32
  size_t members = 0;
  size_t pending = 0;  // members not yet ready
  std::unique_ptr<comm::Work> work;
};

GradReducer::GradReducer(comm::Group& group, const std::vector<std::vector<int64_t>>& shapes,
                         int64_t bucket_bytes)
    : group_(group),
      gradients_(shapes.size()),
      bucket_of_(shapes.size()),
      ready_(shapes.size(), false) {
  std::vector<int64_t> numbers, bytes;
  for (const std::vector<int64_t>& shape : shapes) {
    numbers.push_back(c10::multiply_integers(shape));
    bytes.push_back(numbers.back() * static_cast<int64_t>(sizeof(float)));
  }
  for (const std::vector<size_t>& members : plan_buckets(bytes, bucket_bytes)) {
    Bucket& bucket = buckets_.emplace_back();
    bucket.members = bucket.pending = members.size();
    int64_t total = 0;
    for (const size_t index : members) total += numbers[index];
    bucket.flat = at::zeros({total}, at::kFloat);
    int64_t offset = 0;
    for (const size_t index : members) {
      gradients_[index] = bucket.flat.narrow(0, offset, numbers[index]).view(shapes[index]);
      bucket_of_[index] = buckets_.size() - 1;
      offset += numbers[index];
    }
  }
}

GradReducer::~GradReducer() = default;

void GradReducer::mark_ready(size_t index) {
  CONVOY_INVARIANT(!ready_.at(index), "gradient {} marked ready twice in one step", index);
  ready_[index] = true;
  --buckets_[bucket_of_[index]].pending;
  // Ranks may complete buckets in different orders. Sending in plan order keeps the collectives matched.
  while (next_ < buckets_.size() && buckets_[next_].pending == 0) send(buckets_[next_++]);
}

void GradReducer::send(Bucket& bucket) { bucket.work = group_.start_all_reduce_sum(bucket.flat); }

void GradReducer::finish_step() {
  CONVOY_INVARIANT(next_ == buckets_.size(), "{} of {} buckets were not sent",
                   buckets_.size() - next_, buckets_.size());
  for (Bucket& bucket : buckets_) {
    bucket.work->wait();
    bucket.work.reset();
    bucket.pending = bucket.members;
  }
  std::fill(ready_.begin(), ready_.end(), false);
  next_ = 0;
}

}  // namespace convoy::parallel
