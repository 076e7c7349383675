// SPDX-License-Identifier: Apache-2.0
//
// Sums gradients over the ranks while backward is still running. Driven by the thread that runs
// autograd.
//
// A bucket that is sent as bf16 takes half the bytes. Each rank's sum over its own micro-batches is
// rounded to bf16 once, and each addition over ranks is rounded again. With N ranks an element is
// off by at most N / 256 of the sum of its absolute values over ranks. All ranks get the same bits,
// as with fp32.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "convoy/train/comm/group.h"

namespace convoy::parallel {

class GradReducer {
 public:
  // `gradients`: tensors of the same shapes and types on every rank. Each keeps its values and
  // stays the same tensor, but its storage becomes part of its bucket's. `ready_order`: every index
  // once, in the order in which gradients become ready; buckets are sent in this order, which is
  // the same on every rank. `wire`: the type in which buckets are sent and added up; none: the
  // gradients' own type. `bucket_bytes` counts the gradients in their own type.
  GradReducer(comm::Group& group, std::vector<at::Tensor> gradients,
              const std::vector<size_t>& ready_order, int64_t bucket_bytes,
              std::optional<at::ScalarType> wire = std::nullopt);
  ~GradReducer();
  GradReducer(const GradReducer&) = delete;
  GradReducer& operator=(const GradReducer&) = delete;

  // Gradient `index` is final for this step and must not be touched until finish_step(). Async.
  // Collective when it fills the bucket that is sent next. Throws StateError when marked twice.
  void mark_ready(size_t index);
  bool is_ready(size_t index) const { return ready_.at(index); }

  // Collective. Blocks until the gradients hold the sums. Throws StateError if a gradient was not
  // marked.
  void finish_step();

 private:
  struct Bucket;
  void send(Bucket& bucket);

  comm::Group& group_;
  const std::optional<at::ScalarType> wire_;
  std::vector<Bucket> buckets_;
  std::vector<size_t> bucket_of_;  // by gradient index
  std::vector<bool> ready_;        // by gradient index
  size_t next_ = 0;                // first bucket not yet sent
};

}  // namespace convoy::parallel
