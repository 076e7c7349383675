// SPDX-License-Identifier: Apache-2.0
//
// Sums gradients over the ranks while backward is still running. Driven by the thread that runs
// autograd.
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
  // `gradients`: of the same shapes and types on every rank. Each keeps its values and stays
  // the same tensor, but its storage becomes part of its bucket's. `ready_order`: every index once,
  // the same on every rank; buckets are sent in it.
  GradReducer(comm::Group& group, std::vector<at::Tensor> gradients,
              const std::vector<size_t>& ready_order, int64_t bucket_bytes);
  ~GradReducer();
  GradReducer(const GradReducer&) = delete;
  GradReducer& operator=(const GradReducer&) = delete;

  // Gradient `index` is final for this step and not to be touched until finish_step(). Async.
  // Collective when it fills the bucket whose turn it is. Throws StateError when marked twice.
  void mark_ready(size_t index);
  bool is_ready(size_t index) const { return ready_.at(index); }

  // Collective. Blocks until the gradients hold the sums. Throws StateError if a gradient was not
  // marked.
  void finish_step();

 private:
  struct Bucket;
  void send(Bucket& bucket);

  comm::Group& group_;
  std::vector<Bucket> buckets_;
  std::vector<size_t> bucket_of_;  // by gradient index
  std::vector<bool> ready_;        // by gradient index
  size_t next_ = 0;                // first bucket not yet sent
};

}  // namespace convoy::parallel
