// SPDX-License-Identifier: Apache-2.0
//
// The group of one rank: every collective is done as it starts.
#pragma once

#include "convoy/train/comm/group.h"

namespace convoy::comm {

class SingleGroup : public Group {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::unique_ptr<Work> start_all_reduce(at::Tensor tensor, Reduction reduction) override;
  std::unique_ptr<Work> start_reduce_scatter(at::Tensor whole, at::Tensor own,
                                             Reduction reduction) override;
  std::unique_ptr<Work> start_all_gather(at::Tensor own, at::Tensor whole) override;
  void broadcast(at::Tensor tensor, int root) override;
  std::vector<std::string> all_gather_bytes(std::string_view bytes) override;
  void barrier() override;
  void abort() override;
  std::unique_ptr<Group> split(int color, std::string_view name) override;
};

}  // namespace convoy::comm
