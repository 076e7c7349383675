// SPDX-License-Identifier: Apache-2.0
//
// The barrier point of ranks that are threads of one process.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace convoy::comm {

class ThreadTeam {
 public:
  explicit ThreadTeam(int size) : brought_(static_cast<size_t>(size)) {}
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return static_cast<int>(brought_.size()); }

  // The contribution of one rank to a collective.
  struct Brought {
    int64_t sequence = 0;  // the collective's number, counted alike by every rank
    at::Tensor from = {};
    at::Tensor to = {};
    std::string bytes = {};
    std::shared_ptr<ThreadTeam> team = {};
  };
  using Use = std::function<void(std::vector<Brought>& all)>;

  // Collective. Blocks until all ranks have brought something. Then all ranks run their `use` at
  // the same time, on what all ranks brought, and go on when every rank has done so. Throws
  // std::runtime_error when a rank has failed or does not come within `timeout` (0 = no limit),
  // StateError when the ranks bring different collectives.
  void meet(int rank, Brought brought, std::chrono::seconds timeout, const Use& use);
  // Ends all waits, present and future. From any thread.
  void abort();

 private:
  void await_all(std::chrono::seconds timeout);

  std::mutex mutex_;
  std::condition_variable all_here_;
  size_t here_ = 0;
  uint64_t rounds_ = 0;
  bool aborted_ = false;
  std::vector<Brought> brought_;
};

}  // namespace convoy::comm
