// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/comm/threads/thread_group.h"

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/train/comm/store_barrier.h"

namespace convoy::comm {
namespace {

using Brought = ThreadTeam::Brought;

// A flat view of the same memory, outside autograd. It has its own version counter, because the
// thread that owns `tensor` may be reading the tensor's counter.
at::Tensor memory_of(const at::Tensor& tensor) { return tensor.variable_data().view({-1}); }

// Waits until the device has finished writing the tensor, because other threads read it next.
void settle(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.device().is_cpu()) return;
  c10::impl::VirtualGuardImpl(tensor.device().type()).getStream(tensor.device()).synchronize();
}

// Every rank brought one tensor. Returns this rank's range of the elements of each of them.
std::vector<at::Tensor> parts_of(const std::vector<Brought>& all, int rank) {
  const auto ranks = static_cast<int64_t>(all.size());
  std::vector<at::Tensor> parts;
  for (const Brought& one : all) {
    const int64_t begin = one.from.numel() * rank / ranks;
    const int64_t end = one.from.numel() * (rank + 1) / ranks;
    parts.push_back(memory_of(one.from).narrow(0, begin, end - begin));
  }
  return parts;
}

void reduce_into(at::Tensor& into, const at::Tensor& other, Reduction reduction) {
  if (reduction == Reduction::Sum)
    into.add_(other);
  else if (reduction == Reduction::Max)
    at::maximum_out(into, into, other);
  else
    at::minimum_out(into, into, other);
}

void reduce_pairwise(std::vector<at::Tensor>& parts, Reduction reduction) {
  for (size_t stride = 1; stride < parts.size(); stride *= 2)
    for (size_t left = 0; left + stride < parts.size(); left += 2 * stride)
      reduce_into(parts[left], parts[left + stride].to(parts[left].device()), reduction);
  for (size_t other = 1; other < parts.size(); ++other) parts[other].copy_(parts[0]);
}

void copy_unless_same(const at::Tensor& from, const at::Tensor& to) {
  if (from.data_ptr() != to.data_ptr()) to.copy_(from);
}

}  // namespace

class ThreadGroup::ThreadWork : public Work {
 public:
  ThreadWork(ThreadGroup& group, const CollectiveScope& scope, Brought brought, ThreadTeam::Use use)
      : group_(group), scope_(scope), brought_(std::move(brought)), use_(std::move(use)) {}

  void wait() override {
    scope_.finish([&] { group_.meet(std::move(brought_), use_); });
  }

 private:
  ThreadGroup& group_;
  CollectiveScope scope_;
  Brought brought_;
  ThreadTeam::Use use_;
};

ThreadGroup::ThreadGroup(std::shared_ptr<StoreBarrier> store_barrier,
                         std::shared_ptr<ThreadTeam> team, int rank, std::chrono::seconds timeout,
                         std::string_view name)
    : store_barrier_(std::move(store_barrier)),
      team_(std::move(team)),
      rank_(rank),
      timeout_(timeout),
      collectives_(store_barrier_->flight(), rank, team_->size(), name) {}

void ThreadGroup::meet(Brought brought, const ThreadTeam::Use& use) {
  settle(brought.from);
  settle(brought.to);
  team_->meet(rank_, std::move(brought), timeout_, [&](std::vector<Brought>& all) {
    const at::NoGradGuard no_grad;
    use(all);
    for (const Brought& one : all) {
      settle(one.from);
      settle(one.to);
    }
  });
}

std::unique_ptr<Work> ThreadGroup::start(const CollectiveScope& scope, at::Tensor from,
                                         at::Tensor to, ThreadTeam::Use use) {
  Brought brought{.sequence = sequence_++, .from = std::move(from), .to = std::move(to)};
  return std::make_unique<ThreadWork>(*this, scope, std::move(brought), std::move(use));
}

std::unique_ptr<Work> ThreadGroup::start_all_reduce(at::Tensor tensor, Reduction reduction) {
  const CollectiveScope scope = collectives_.enter("all_reduce", tensor);
  return start(scope, std::move(tensor), {}, [this, reduction](std::vector<Brought>& all) {
    std::vector<at::Tensor> parts = parts_of(all, rank_);
    reduce_pairwise(parts, reduction);
  });
}

std::unique_ptr<Work> ThreadGroup::start_reduce_scatter(at::Tensor whole, at::Tensor own,
                                                        Reduction reduction) {
  CONVOY_INVARIANT(whole.numel() == size() * own.numel(), "{} numbers for {} ranks with {} each",
                   whole.numel(), size(), own.numel());
  const CollectiveScope scope = collectives_.enter("reduce_scatter", whole);
  return start(scope, std::move(whole), std::move(own),
               [this, reduction](std::vector<Brought>& all) {
                 at::Tensor reduced = memory_of(all[static_cast<size_t>(rank_)].to);
                 std::vector<at::Tensor> pieces;
                 for (const Brought& one : all)
                   pieces.push_back(memory_of(one.from)
                                        .narrow(0, rank_ * reduced.numel(), reduced.numel())
                                        .to(reduced.device()));
                 reduce_rows(reduced, at::stack(pieces), reduction);
               });
}

std::unique_ptr<Work> ThreadGroup::start_all_gather(at::Tensor own, at::Tensor whole) {
  CONVOY_INVARIANT(whole.numel() == size() * own.numel(), "{} numbers for {} ranks with {} each",
                   whole.numel(), size(), own.numel());
  const CollectiveScope scope = collectives_.enter("all_gather", own);
  return start(scope, std::move(own), std::move(whole), [this](std::vector<Brought>& all) {
    const at::Tensor gathered = memory_of(all[static_cast<size_t>(rank_)].to);
    const int64_t piece = all.front().from.numel();
    for (size_t other = 0; other < all.size(); ++other)
      copy_unless_same(memory_of(all[other].from),
                       gathered.narrow(0, static_cast<int64_t>(other) * piece, piece));
  });
}

void ThreadGroup::broadcast(at::Tensor tensor, int root) {
  const CollectiveScope scope = collectives_.enter("broadcast", tensor);
  start(scope, std::move(tensor), {}, [this, root](std::vector<Brought>& all) {
    copy_unless_same(memory_of(all[static_cast<size_t>(root)].from),
                     memory_of(all[static_cast<size_t>(rank_)].from));
  })->wait();
}

std::vector<std::string> ThreadGroup::all_gather_bytes(std::string_view bytes) {
  std::vector<std::string> gathered;
  collectives_.enter("all_gather").finish([&] {
    meet({.sequence = sequence_++, .bytes = std::string(bytes)}, [&](std::vector<Brought>& all) {
      for (const Brought& one : all) gathered.push_back(one.bytes);
    });
  });
  return gathered;
}

void ThreadGroup::barrier() {
  collectives_.enter("barrier").finish(
      [&] { meet({.sequence = sequence_++}, [](std::vector<Brought>&) {}); });
}

void ThreadGroup::wait_for_all() {
  collectives_.enter("wait").finish([&] {
    team_->meet(rank_, {.sequence = sequence_++}, std::chrono::seconds(0),
                [](std::vector<Brought>&) {});
  });
}

void ThreadGroup::abort() {
  team_->abort();
  for (const std::weak_ptr<ThreadTeam>& part : parts_)
    if (const auto team = part.lock()) team->abort();
}

std::unique_ptr<Group> ThreadGroup::split(int color, std::string_view name) {
  const std::string own = std::to_string(color);
  const std::vector<std::string> colors = all_gather_bytes(own);
  const auto first = std::find(colors.begin(), colors.end(), own) - colors.begin();
  const auto rank = std::count(colors.begin(), colors.begin() + rank_, own);
  Brought brought{.sequence = sequence_++};
  if (first == rank_)
    brought.team = std::make_shared<ThreadTeam>(
        static_cast<int>(std::count(colors.begin(), colors.end(), own)));
  std::shared_ptr<ThreadTeam> team;
  collectives_.enter("split").finish([&] {
    meet(std::move(brought),
         [&](std::vector<Brought>& all) { team = all[static_cast<size_t>(first)].team; });
  });
  parts_.push_back(team);
  return std::make_unique<ThreadGroup>(store_barrier_, std::move(team), static_cast<int>(rank),
                                       timeout_, name);
}

}  // namespace convoy::comm
