// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/comm/group.h"

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "convoy/train/comm/gloo/gloo_group.h"
#include "convoy/train/comm/nccl/nccl_group.h"
#include "convoy/train/comm/single/single_group.h"
#include "convoy/train/comm/threads/thread_group.h"

namespace convoy::comm {

std::unique_ptr<Work> Group::start_all_reduce_sum(at::Tensor tensor) {
  return start_all_reduce(std::move(tensor), Reduction::Sum);
}

std::unique_ptr<Work> Group::start_reduce_scatter_sum(at::Tensor whole, at::Tensor own) {
  return start_reduce_scatter(std::move(whole), std::move(own), Reduction::Sum);
}

void Group::all_reduce_sum(at::Tensor tensor) { start_all_reduce_sum(std::move(tensor))->wait(); }

void Group::all_gather(at::Tensor own, at::Tensor whole) {
  start_all_gather(std::move(own), std::move(whole))->wait();
}

c10::intrusive_ptr<c10d::Backend> Group::c10d_backend() { return {}; }

bool Group::any(bool value) {
  at::Tensor votes = at::full({1}, value ? 1 : 0, at::kLong);
  all_reduce_sum(votes);
  return votes.item<int64_t>() > 0;
}

std::unique_ptr<Group> join_group_at(std::shared_ptr<StoreBarrier> store_barrier,
                                     std::chrono::seconds timeout, at::Device device) {
  if (store_barrier->size() == 1) return std::make_unique<SingleGroup>();
  if (store_barrier->team() != nullptr)
    return std::make_unique<ThreadGroup>(store_barrier, store_barrier->team(),
                                         store_barrier->rank(), timeout);
  telemetry::FlightWriter& flight = store_barrier->flight();
  auto host = std::make_unique<GlooGroup>(std::move(store_barrier), timeout);
  if (device.is_cpu()) return host;
  return std::make_unique<NcclGroup>(std::move(host), flight, open_nccl(), device, timeout);
}

std::unique_ptr<Group> join_group(const RankEnvironment& environment, std::chrono::seconds timeout,
                                  telemetry::FlightWriter* flight, at::Device device) {
  return join_group_at(std::make_shared<StoreBarrier>(environment, timeout, flight), timeout,
                       device);
}

}  // namespace convoy::comm
