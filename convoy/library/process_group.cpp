// SPDX-License-Identifier: Apache-2.0
#include "convoy/library/process_group.h"

#include <ATen/ATen.h>
#include <malloc.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "convoy/core/base/error.h"
#include "convoy/library/internal/group_internal.h"
#include "convoy/machine/device/rank_device.h"
#include "convoy/machine/device/threads.h"
#include "convoy/machine/processes/error_file.h"
#include "convoy/train/comm/environment.h"

namespace convoy {
namespace {

// Runs `collective` on a contiguous tensor with the values of `tensor`, which then has its result.
template <class Collective>
void in_place(at::Tensor& tensor, Collective collective) {
  const at::NoGradGuard no_grad;
  at::Tensor dense = tensor.detach().contiguous();
  collective(dense);
  if (dense.data_ptr() != tensor.data_ptr())
    tensor.copy_(dense);
  else
    tensor.unsafeGetTensorImpl()->bump_version();  // a group writes past LibTorch's count
}

int report(Error error, const comm::RankEnvironment& environment) {
  if (error.location().rank < 0 && environment.world > 1) error.location().rank = environment.rank;
  if (environment.error_file.empty() || !processes::write_error_file(environment.error_file, error))
    std::fprintf(stderr, "%s\n", error.sentence().c_str());
  return static_cast<int>(error.code());
}

// Each backward pass takes the memory of its gradients anew. By default glibc gives freed memory at
// the top of the heap back to the system, which clears it page by page the next time.
void keep_freed_memory() {
  for (const char* own_choice :
       {"MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"})
    if (std::getenv(own_choice) != nullptr) return;
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 512 << 20);
}

// RANK and its like may be what is wrong.
comm::RankEnvironment environment_or_none() {
  try {
    return comm::read_rank_environment();
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

ProcessGroup::ProcessGroup(std::unique_ptr<Internal> internal) : internal_(std::move(internal)) {}
ProcessGroup::~ProcessGroup() = default;

int ProcessGroup::rank() const { return internal_->group->rank(); }
int ProcessGroup::size() const { return internal_->group->size(); }
int ProcessGroup::local_rank() const { return internal_->local_rank; }
at::Device ProcessGroup::device() const { return internal_->device; }

void ProcessGroup::all_reduce(at::Tensor tensor, Reduce reduce) {
  CONVOY_CHECK(reduce == Reduce::Sum || tensor.is_floating_point(), ConfigError,
               "a mean over ranks needs a tensor of a floating type, found {}",
               c10::toString(tensor.scalar_type()));
  in_place(tensor, [&](at::Tensor& dense) { internal_->group->all_reduce_sum(dense); });
  const at::NoGradGuard no_grad;
  if (reduce == Reduce::Mean) tensor.div_(size());
}

void ProcessGroup::broadcast(at::Tensor tensor, int root) {
  CONVOY_CHECK(root >= 0 && root < size(), ConfigError,
               "a broadcast comes from a rank from 0 to {}, found {}", size() - 1, root);
  in_place(tensor, [&](at::Tensor& dense) { internal_->group->broadcast(dense, root); });
}

at::Tensor ProcessGroup::all_gather(const at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  const at::Tensor own = tensor.detach().contiguous();
  std::vector<int64_t> shape = own.sizes().vec();
  shape.insert(shape.begin(), size());
  at::Tensor whole = at::empty(shape, own.options());
  internal_->group->all_gather(own, whole);
  return whole;
}

std::vector<std::string> ProcessGroup::all_gather_bytes(std::string_view bytes) {
  return internal_->group->all_gather_bytes(bytes);
}

void ProcessGroup::barrier() { internal_->group->barrier(); }
void ProcessGroup::abort() { internal_->group->abort(); }

std::shared_ptr<ProcessGroup> init(const InitOptions& options) {
  CONVOY_CHECK(options.timeout > std::chrono::seconds(0), ConfigError,
               "InitOptions::timeout must be at least a second, found {} s",
               options.timeout.count());
  const comm::RankEnvironment environment = comm::read_rank_environment();
  if (environment.local_world > 1) device::share_cpu_threads(environment.local_world);
  keep_freed_memory();
  auto internal = std::make_unique<detail::GroupAccess::Internal>();
  internal->local_rank = environment.local_rank;
  if (options.device != at::kCPU)
    internal->device =
        device::take_rank_device(c10::DeviceTypeName(options.device, /*lower_case=*/true),
                                 environment.local_rank)
            .device;
  internal->group =
      comm::join_group(environment, options.timeout, &internal->flight, internal->device);
  return detail::GroupAccess::make(std::move(internal));
}

int run_rank(const std::function<void()>& body) {
  const comm::RankEnvironment environment = environment_or_none();
  try {
    body();
    return 0;
  } catch (const Error& error) {
    return report(error, environment);
  } catch (const c10::Error& error) {
    return report(Error(static_cast<ExitCode>(1), "error", error.what_without_backtrace()),
                  environment);
  } catch (const std::exception& error) {
    return report(Error(static_cast<ExitCode>(1), "error", error.what()), environment);
  }
}

namespace detail {

std::shared_ptr<ProcessGroup> required(std::shared_ptr<ProcessGroup> group) {
  CONVOY_CHECK(group != nullptr, ConfigError,
               "no process group was given: pass what convoy::init() returned");
  return group;
}

}  // namespace detail
}  // namespace convoy
