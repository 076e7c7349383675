// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/comm/threads/thread_team.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "convoy/core/base/error.h"

namespace convoy::comm {

void ThreadTeam::await_all(std::chrono::seconds timeout) {
  std::unique_lock lock(mutex_);
  const uint64_t round = rounds_;
  if (!aborted_ && ++here_ == brought_.size()) {
    here_ = 0;
    ++rounds_;
    all_here_.notify_all();
    return;
  }
  const auto over = [&] { return aborted_ || rounds_ != round; };
  if (timeout.count() == 0)
    all_here_.wait(lock, over);
  else if (!all_here_.wait_for(lock, timeout, over))
    throw std::runtime_error(fmt::format("not all replicas came within {} s", timeout.count()));
  if (rounds_ == round) throw std::runtime_error("another replica has failed");
}

void ThreadTeam::meet(int rank, Brought brought, std::chrono::seconds timeout, const Use& use) {
  const int64_t sequence = brought.sequence;
  brought_[static_cast<size_t>(rank)] = std::move(brought);
  await_all(timeout);
  CONVOY_INVARIANT(std::all_of(brought_.begin(), brought_.end(),
                               [&](const Brought& one) { return one.sequence == sequence; }),
                   "replicas are in different collectives");
  use(brought_);
  await_all(timeout);
}

void ThreadTeam::abort() {
  const std::lock_guard lock(mutex_);
  aborted_ = true;
  all_here_.notify_all();
}

}  // namespace convoy::comm
