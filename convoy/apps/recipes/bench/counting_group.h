// SPDX-License-Identifier: Apache-2.0
//
// The group of rank 0 on a host whose other ranks do not exist. Counts collectives of device
// tensors as NCCL would run them, beside the device's work.
#pragma once

#include "convoy/train/comm/group.h"

namespace convoy::recipes {

// The other ranks do not exist: a sum contains only this rank's part, and pieces gathered from
// other ranks have no values. Gathered texts are copies of this rank's text.
class CountingGroup : public comm::Group {
 public:
  explicit CountingGroup(int size) : size_(size) {}

  int rank() const override { return 0; }
  int size() const override { return size_; }
  std::unique_ptr<comm::Work> start_all_reduce(at::Tensor tensor,
                                               comm::Reduction reduction) override;
  std::unique_ptr<comm::Work> start_reduce_scatter(at::Tensor whole, at::Tensor own,
                                                   comm::Reduction reduction) override;
  std::unique_ptr<comm::Work> start_all_gather(at::Tensor own, at::Tensor whole) override;
  void broadcast(at::Tensor tensor, int root) override;
  std::vector<std::string> all_gather_bytes(std::string_view bytes) override;
  void barrier() override {}
  void abort() override {}
  // Throws StateError: all ranks are on one host, so the group is never split.
  std::unique_ptr<comm::Group> split(int color, std::string_view name) override;

 private:
  // `rounds`: how often `tensor`, except one rank's piece, passes through a rank's link.
  std::unique_ptr<comm::Work> start(const char* name, const at::Tensor& tensor, int rounds);

  int size_;
  int64_t started_ = 0;
};

}  // namespace convoy::recipes
