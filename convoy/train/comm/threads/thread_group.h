// SPDX-License-Identifier: Apache-2.0
//
// Ranks that are threads of one process: their collectives work on each other's memory. A
// collective is computed while all ranks are in its wait(), each rank a part of the elements. Sums
// are pairwise in a fixed order, ((0 + 1) + (2 + 3)) + ..., so that they repeat bit for bit.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "convoy/train/comm/collective_scope.h"
#include "convoy/train/comm/group.h"
#include "convoy/train/comm/threads/thread_team.h"

namespace convoy::comm {

class ThreadGroup : public Group {
 public:
  // `name`: a constant text, for records.
  ThreadGroup(std::shared_ptr<StoreBarrier> store_barrier, std::shared_ptr<ThreadTeam> team,
              int rank, std::chrono::seconds timeout, std::string_view name = "replicas");

  int rank() const override { return rank_; }
  int size() const override { return team_->size(); }
  std::unique_ptr<Work> start_all_reduce(at::Tensor tensor, Reduction reduction) override;
  std::unique_ptr<Work> start_reduce_scatter(at::Tensor whole, at::Tensor own,
                                             Reduction reduction) override;
  std::unique_ptr<Work> start_all_gather(at::Tensor own, at::Tensor whole) override;
  void broadcast(at::Tensor tensor, int root) override;
  std::vector<std::string> all_gather_bytes(std::string_view bytes) override;
  void barrier() override;
  void wait_for_all() override;
  void abort() override;
  std::unique_ptr<Group> split(int color, std::string_view name) override;
  double waited_seconds() const override { return collectives_.waited_seconds(); }

 private:
  class ThreadWork;

  std::unique_ptr<Work> start(const CollectiveScope& scope, at::Tensor from, at::Tensor to,
                              ThreadTeam::Use use);
  void meet(ThreadTeam::Brought brought, const ThreadTeam::Use& use);

  std::shared_ptr<StoreBarrier> store_barrier_;
  std::shared_ptr<ThreadTeam> team_;
  const int rank_;
  const std::chrono::seconds timeout_;
  GroupCollectives collectives_;
  int64_t sequence_ = 0;
  std::vector<std::weak_ptr<ThreadTeam>> parts_;  // split from this one
};

}  // namespace convoy::comm
