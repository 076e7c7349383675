// SPDX-License-Identifier: Apache-2.0
//
// Sums gradients over the ranks while backward is still running. Driven by the thread that runs autograd.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "convoy/comm/group.h"

namespace convoy::parallel {

class GradReducer {
 public:
  // One fp32 gradient per entry of `shapes`, all views of one flat buffer per bucket. Same shapes on every rank.
  GradReducer(comm::Group& group, const std::vector<std::vector<int64_t>>& shapes,
              int64_t bucket_bytes);
  ~GradReducer();
  GradReducer(const GradReducer&) = delete;
  GradReducer& operator=(const GradReducer&) = delete;

  // By index, contiguous. Not to be touched between its mark_ready() and finish_step().
  const std::vector<at::Tensor>& gradients() const { return gradients_; }

  // Gradient `index` is final for this step. Async. Collective when it fills a bucket. Throws StateError when marked twice.
  void mark_ready(size_t index);
  bool is_ready(size_t index) const { return ready_.at(index); }

  // Collective. Blocks until gradients() holds the sums. Throws StateError if a gradient was not marked.
  void finish_step();

 private:
  struct Bucket;
  void send(Bucket& bucket);

  comm::Group& group_;
  std::vector<at::Tensor> gradients_;
  std::vector<Bucket> buckets_;
  std::vector<size_t> bucket_of_;  // by gradient index
  std::vector<bool> ready_;        // by gradient index
  size_t next_ = 0;                // first bucket not yet sent
};

}  // namespace convoy::parallel
