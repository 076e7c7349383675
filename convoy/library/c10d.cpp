// SPDX-License-Identifier: Apache-2.0
//
// Groups over a c10d group of another library, and c10d groups for another library.
#include <algorithm>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "convoy/core/base/error.h"
#include "convoy/core/telemetry/runs/run_folder.h"
#include "convoy/library/internal/group_internal.h"
#include "convoy/library/process_group.h"
#include "convoy/train/comm/backend/borrowed_group.h"
#include "convoy/train/comm/gloo/gloo_group.h"

namespace convoy {
namespace {

c10::intrusive_ptr<c10d::Backend> backend_for_cpu(c10d::ProcessGroup& group) {
  try {
    return group.getBackend(c10::DeviceType::CPU);
  } catch (const c10::Error& error) {
    throw ConfigError(fmt::format("the c10d::ProcessGroup has no backend for CPU tensors: {}",
                                  error.what_without_backtrace()),
                      {.hint = "make it with one, such as \"cpu:gloo,cuda:nccl\" in Python, or "
                               "setBackend(torch::kCPU, ...)"});
  }
}

}  // namespace

std::shared_ptr<ProcessGroup> ProcessGroup::over(c10::intrusive_ptr<c10d::ProcessGroup> group) {
  if (!group)
    throw ConfigError("no c10d::ProcessGroup was given", {.hint = "make one, or call init()"});
  auto internal = std::make_shared<Internal>();
  internal->flight = telemetry::FlightWriter::attach();
  internal->group =
      std::make_unique<comm::BorrowedGroup>(backend_for_cpu(*group), internal->flight);
  internal->c10d = std::move(group);
  const std::string own = telemetry::host_name();
  const std::vector<std::string> hosts = internal->group->all_gather_bytes(own);
  internal->local_size = static_cast<int>(std::count(hosts.begin(), hosts.end(), own));
  internal->local_rank =
      static_cast<int>(std::count(hosts.begin(), hosts.begin() + internal->group->rank(), own));
  return detail::GroupAccess::make(std::move(internal));
}

c10::intrusive_ptr<c10d::ProcessGroup> ProcessGroup::c10d_group() {
  if (internal_->c10d) return internal_->c10d;
  using C10d = c10d::ProcessGroup;
  c10::intrusive_ptr<c10d::Backend> backend = internal_->group->c10d_backend();
  if (!backend) backend = comm::gloo_of_one();
  internal_->c10d = c10::make_intrusive<C10d>(rank(), size());
  internal_->c10d->setBackend(c10::DeviceType::CPU, C10d::BackendType::GLOO, backend);
  internal_->c10d->setDefaultBackend(C10d::BackendType::GLOO);
  return internal_->c10d;
}

}  // namespace convoy
