// SPDX-License-Identifier: Apache-2.0
#include "convoy/library/process_group.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <exception>

#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/error.h"
#include "convoy/library/internal/group_internal.h"
#include "convoy/machine/device/rank_device.h"
#include "convoy/machine/device/threads.h"
#include "convoy/machine/processes/error_file.h"
#include "convoy/train/comm/environment.h"
#include "convoy/train/comm/exchange.h"

namespace convoy {
namespace {

at::Tensor dense_of(const at::Tensor& tensor) {
  return tensor.detach().resolve_conj().resolve_neg().contiguous();
}

// Runs `collective` on a contiguous tensor with the values of `tensor`, which then has its result.
template <class Collective>
void in_place(at::Tensor& tensor, Collective collective) {
  const at::NoGradGuard no_grad;
  at::Tensor dense = dense_of(tensor);
  collective(dense);
  if (dense.data_ptr() != tensor.data_ptr())
    tensor.copy_(dense);
  else
    tensor.unsafeGetTensorImpl()->bump_version();  // a group writes past LibTorch's count
}

bool can_be_summed(at::ScalarType type) {
  return c10::isFloatingType(type) || type == at::kInt || type == at::kLong ||
         type == at::kComplexFloat || type == at::kComplexDouble;
}

enum class Operation { AllReduce, Broadcast, AllGather, AllGatherBytes, Barrier };
constexpr std::array<const char*, 5> kOperationNames = {"all_reduce", "broadcast", "all_gather",
                                                        "all_gather_bytes", "barrier"};

// A call of one rank, as all ranks must make it.
struct Call {
  Operation operation;
  int root = 0;
  int64_t dtype = -1;  // -1: no tensor
  int64_t num_dims = 0;
  std::array<int64_t, 8> shape = {};  // the first dimensions

  bool operator==(const Call&) const = default;
};

Call call_of(Operation operation, const at::Tensor& tensor, int root = 0) {
  Call call{.operation = operation,
            .root = root,
            .dtype = static_cast<int64_t>(tensor.scalar_type()),
            .num_dims = tensor.dim()};
  std::copy_n(tensor.sizes().begin(), std::min(call.shape.size(), tensor.sizes().size()),
              call.shape.begin());
  return call;
}

std::string words_of(const Call& call) {
  std::string words = kOperationNames.at(static_cast<size_t>(call.operation));
  if (call.dtype < 0) return words;
  const auto num_dims = std::min(static_cast<size_t>(call.num_dims), call.shape.size());
  words += fmt::format(" of {} [{}]", c10::toString(static_cast<at::ScalarType>(call.dtype)),
                       fmt::join(call.shape.begin(), call.shape.begin() + num_dims, ", "));
  if (call.operation == Operation::Broadcast) words += fmt::format(" from rank {}", call.root);
  return words;
}

// Collective. Backends take bytes as they come: they would add up numbers of other types, and wait
// for a root that does not send.
void require_same_call(comm::Group& group, const Call& own) {
  if (group.size() == 1) return;
  const std::vector<Call> all = comm::exchange(group, own);
  for (size_t rank = 1; rank < all.size(); ++rank)
    if (!(all[rank] == all[0]))
      throw CommError(
          fmt::format("ranks call different collectives: rank 0 {}, rank {} {}", words_of(all[0]),
                      rank, words_of(all[rank])),
          {.hint = "all ranks must call the same function with tensors of one type and shape, from "
                   "one root",
           .rank = group.rank()});
}

int report(Error error, const comm::RankEnvironment& environment) {
  if (error.location().rank < 0 && environment.world > 1) error.location().rank = environment.rank;
  if (environment.error_file.empty() || !processes::write_error_file(environment.error_file, error))
    std::fprintf(stderr, "%s\n", error.sentence().c_str());
  return static_cast<int>(error.code());
}

// Each backward pass allocates its gradients again. By default glibc gives freed memory at the top
// of the heap back to the system, which clears it page by page the next time.
void keep_freed_memory() {
  for (const char* own_choice :
       {"MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"})
    if (environment_variable(own_choice)) return;
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 512 << 20);
}

// All ranks join their groups in the same order.
int next_group() {
  static std::atomic<int> next = 0;
  return next++;
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
  if (reduce != Reduce::Sum && !tensor.is_floating_point() && !tensor.is_complex())
    throw ConfigError(fmt::format("a mean over ranks needs a tensor of a floating type, found {}",
                                  c10::toString(tensor.scalar_type())),
                      {.hint = "convert it, such as by to(torch::kFloat), or take Reduce::Sum"});
  if (!can_be_summed(tensor.scalar_type()))
    throw ConfigError(
        fmt::format("no sum over ranks of tensors of {}", c10::toString(tensor.scalar_type())),
        {.hint = "convert them, such as by to(torch::kLong)"});
  require_same_call(*internal_->group, call_of(Operation::AllReduce, tensor));
  in_place(tensor, [&](at::Tensor& dense) { internal_->group->all_reduce_sum(dense); });
  const at::NoGradGuard no_grad;
  if (reduce == Reduce::Mean) tensor.div_(size());
}

void ProcessGroup::broadcast(at::Tensor tensor, int root) {
  if (root < 0 || root >= size())
    throw ConfigError(
        fmt::format("a broadcast comes from a rank from 0 to {}, found {}", size() - 1, root),
        {.hint = "give a rank of this group"});
  require_same_call(*internal_->group, call_of(Operation::Broadcast, tensor, root));
  in_place(tensor, [&](at::Tensor& dense) { internal_->group->broadcast(dense, root); });
}

at::Tensor ProcessGroup::all_gather(const at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  require_same_call(*internal_->group, call_of(Operation::AllGather, tensor));
  const at::Tensor own = dense_of(tensor);
  std::vector<int64_t> shape = own.sizes().vec();
  shape.insert(shape.begin(), size());
  at::Tensor whole = at::empty(shape, own.options());
  internal_->group->all_gather(own, whole);
  return whole;
}

std::vector<std::string> ProcessGroup::all_gather_bytes(std::string_view bytes) {
  require_same_call(*internal_->group, {.operation = Operation::AllGatherBytes});
  return internal_->group->all_gather_bytes(bytes);
}

void ProcessGroup::barrier() {
  require_same_call(*internal_->group, {.operation = Operation::Barrier});
  internal_->group->barrier();
}
void ProcessGroup::abort() { internal_->group->abort(); }

std::shared_ptr<ProcessGroup> init(const InitOptions& options) {
  if (options.timeout <= std::chrono::seconds(0))
    throw ConfigError(fmt::format("InitOptions::timeout must be at least a second, found {} s",
                                  options.timeout.count()),
                      {.hint = "such as std::chrono::seconds(600)"});
  comm::RankEnvironment environment = comm::read_rank_environment();
  environment.group = next_group();
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
    const std::string_view what = error.what_without_backtrace();
    if (what.starts_with(detail::kOwnErrorMark))
      return report(ConfigError(std::string(what.substr(detail::kOwnErrorMark.size()))),
                    environment);
    return report(Error(static_cast<ExitCode>(1), "error", std::string(what)), environment);
  } catch (const std::exception& error) {
    return report(Error(static_cast<ExitCode>(1), "error", error.what()), environment);
  }
}

namespace detail {

std::shared_ptr<ProcessGroup> required(std::shared_ptr<ProcessGroup> group) {
  if (group == nullptr)
    throw ConfigError("no process group was given", {.hint = "pass what convoy::init() returned"});
  return group;
}

}  // namespace detail
}  // namespace convoy
