// SPDX-License-Identifier: Apache-2.0
#include "convoy/library/process_group.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/error.h"
#include "convoy/library/internal/agreed_call.h"
#include "convoy/library/internal/group_internal.h"
#include "convoy/library/internal/started_work.h"
#include "convoy/machine/device/rank_device.h"
#include "convoy/machine/device/threads.h"
#include "convoy/machine/processes/error_file.h"
#include "convoy/train/comm/collective_scope.h"
#include "convoy/train/comm/rank_environment.h"

namespace convoy {
namespace {

using detail::AgreedCall;
using detail::call_of;
using detail::Operation;
using detail::StartedWork;

at::Tensor dense_of(const at::Tensor& tensor) {
  return tensor.detach().resolve_conj().resolve_neg().contiguous();
}

void check_reducible(at::ScalarType type, Reduce reduce) {
  const bool is_complex = type == at::kComplexFloat || type == at::kComplexDouble;
  const bool is_int = type == at::kInt || type == at::kLong;
  const std::string_view name = c10::toString(type);
  if (!c10::isFloatingType(type) && !is_int && !is_complex)
    throw ConfigError(fmt::format("no reduction over ranks of tensors of {}", name),
                      {.hint = "convert them, such as by to(torch::kLong)"});
  if (reduce == Reduce::Mean && is_int)
    throw ConfigError(
        fmt::format("a mean over ranks needs a tensor of a floating type, found {}", name),
        {.hint = "convert it, such as by to(torch::kFloat), or take Reduce::Sum"});
  if ((reduce == Reduce::Max || reduce == Reduce::Min) && is_complex)
    throw ConfigError(fmt::format("no largest or smallest over ranks of tensors of {}", name),
                      {.hint = "reduce their abs() or real parts"});
}

// A mean is computed as a sum, and divided afterwards.
comm::Reduction reduction_of(Reduce reduce) {
  return reduce == Reduce::Max   ? comm::Reduction::Max
         : reduce == Reduce::Min ? comm::Reduction::Min
                                 : comm::Reduction::Sum;
}

void check_rows(const at::Tensor& tensor, int num_ranks) {
  if (tensor.dim() == 0 || tensor.size(0) != num_ranks)
    throw ConfigError(
        fmt::format("reduce_scatter takes a row for each of {} ranks, found a tensor of shape [{}]",
                    num_ranks, fmt::join(tensor.sizes(), ", ")),
        {.hint = "such as tensor.view({group->size(), -1})"});
}

// Each of these functions starts a collective that the ranks have agreed on.

StartedWork begin_all_reduce(comm::Group& group, const at::Tensor& tensor, Reduce reduce) {
  StartedWork started{.dense = dense_of(tensor), .result = tensor, .in_place = true};
  started.collective = group.start_all_reduce(started.dense, reduction_of(reduce));
  if (reduce == Reduce::Mean) started.divisor = group.size();
  return started;
}

StartedWork begin_all_gather(comm::Group& group, const at::Tensor& tensor) {
  StartedWork started{.dense = dense_of(tensor)};
  std::vector<int64_t> shape = started.dense.sizes().vec();
  shape.insert(shape.begin(), group.size());
  started.result = at::empty(shape, started.dense.options());
  started.collective = group.start_all_gather(started.dense, started.result);
  return started;
}

StartedWork begin_reduce_scatter(comm::Group& group, const at::Tensor& tensor, Reduce reduce) {
  StartedWork started{.dense = dense_of(tensor)};
  started.result = at::empty(started.dense.sizes().slice(1), started.dense.options());
  started.collective = group.start_reduce_scatter(started.dense.view({-1}),
                                                  started.result.view({-1}), reduction_of(reduce));
  if (reduce == Reduce::Mean) started.divisor = group.size();
  return started;
}

int report(Error error, const comm::RankEnvironment& environment) {
  if (error.location().rank < 0 && environment.world > 1) error.location().rank = environment.rank;
  if (environment.error_file.empty() || !processes::write_error_file(environment.error_file, error))
    std::fprintf(stderr, "%s\n", error.sentence().c_str());
  return static_cast<int>(error.code());
}

// Every backward pass allocates its gradients again. By default glibc returns freed memory at the
// top of the heap to the system, which must then clear its pages for the next pass.
void keep_freed_memory() {
  for (const char* own_choice :
       {"MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"})
    if (environment_variable(own_choice)) return;
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 512 << 20);
}

// The number of a new group. It is equal on all ranks, because all ranks join their groups in the
// same order.
int next_group() {
  static std::atomic<int> next = 0;
  return next++;
}

// The environment of this rank; the default one when RANK or a similar variable is wrong, since
// that error may be the one to report.
comm::RankEnvironment environment_or_none() {
  try {
    return comm::read_rank_environment();
  } catch (const Error&) {
    return {};
  }
}

// The terminate handler that was set before run_rank(). It is global, because the C++ runtime
// passes no argument to a handler.
std::atomic<std::terminate_handler> handler_before = nullptr;

// Where ranks call collectives of different sizes, a thread of gloo's throws, and nothing on that
// thread catches it. So the C++ runtime would abort the rank. Reports such an error and ends the
// rank as run_rank() does for an error of `body`; any other error aborts as before.
[[noreturn]] void end_after_uncaught() {
  try {
    if (std::current_exception()) std::rethrow_exception(std::current_exception());
  } catch (const std::exception& error) {
    const std::string what = error.what();
    if (what.find("gloo/transport/") != std::string::npos)
      std::_Exit(report(
          CommError("gloo cannot read a message of another rank: " + what,
                    {.hint = "the ranks call different collectives: one left out a step, or has "
                             "one too many"}),
          environment_or_none()));
  } catch (...) {
    // Not an error of gloo, because gloo throws only std::exception.
  }
  if (const std::terminate_handler before = handler_before) before();
  std::abort();
}

class TerminateHandler {
 public:
  TerminateHandler() { handler_before = before_ = std::set_terminate(end_after_uncaught); }
  ~TerminateHandler() { std::set_terminate(before_); }
  TerminateHandler(const TerminateHandler&) = delete;
  TerminateHandler& operator=(const TerminateHandler&) = delete;

 private:
  std::terminate_handler before_ = nullptr;
};

}  // namespace

ProcessGroup::ProcessGroup(std::shared_ptr<Internal> internal) : internal_(std::move(internal)) {}
ProcessGroup::~ProcessGroup() = default;

int ProcessGroup::rank() const { return internal_->group->rank(); }
int ProcessGroup::size() const { return internal_->group->size(); }
int ProcessGroup::local_rank() const { return internal_->local_rank; }
int ProcessGroup::local_size() const { return internal_->local_size; }
at::Device ProcessGroup::device() const { return internal_->device; }

void ProcessGroup::all_reduce(at::Tensor tensor, Reduce reduce) {
  check_reducible(tensor.scalar_type(), reduce);
  comm::Group& group = *internal_->group;
  AgreedCall(group, call_of(Operation::AllReduce, tensor, static_cast<int>(reduce))).settle();
  begin_all_reduce(group, tensor, reduce).wait();
}

Work ProcessGroup::start_all_reduce(at::Tensor tensor, Reduce reduce) {
  check_reducible(tensor.scalar_type(), reduce);
  comm::Group& group = *internal_->group;
  AgreedCall agreed(group, call_of(Operation::AllReduce, tensor, static_cast<int>(reduce)));
  return detail::WorkAccess::make(internal_, std::move(agreed),
                                  begin_all_reduce(group, tensor, reduce));
}

void ProcessGroup::broadcast(at::Tensor tensor, int root) {
  if (root < 0 || root >= size())
    throw ConfigError(
        fmt::format("a broadcast comes from a rank from 0 to {}, found {}", size() - 1, root),
        {.hint = "give a rank of this group"});
  AgreedCall(*internal_->group, call_of(Operation::Broadcast, tensor, root)).settle();
  StartedWork done{.dense = dense_of(tensor), .result = tensor, .in_place = true};
  internal_->group->broadcast(done.dense, root);
  done.wait();
}

at::Tensor ProcessGroup::all_gather(const at::Tensor& tensor) {
  AgreedCall(*internal_->group, call_of(Operation::AllGather, tensor)).settle();
  return begin_all_gather(*internal_->group, tensor).wait();
}

Work ProcessGroup::start_all_gather(const at::Tensor& tensor) {
  AgreedCall agreed(*internal_->group, call_of(Operation::AllGather, tensor));
  return detail::WorkAccess::make(internal_, std::move(agreed),
                                  begin_all_gather(*internal_->group, tensor));
}

at::Tensor ProcessGroup::reduce_scatter(const at::Tensor& tensor, Reduce reduce) {
  check_reducible(tensor.scalar_type(), reduce);
  check_rows(tensor, size());
  comm::Group& group = *internal_->group;
  AgreedCall(group, call_of(Operation::ReduceScatter, tensor, static_cast<int>(reduce))).settle();
  return begin_reduce_scatter(group, tensor, reduce).wait();
}

Work ProcessGroup::start_reduce_scatter(const at::Tensor& tensor, Reduce reduce) {
  check_reducible(tensor.scalar_type(), reduce);
  check_rows(tensor, size());
  comm::Group& group = *internal_->group;
  AgreedCall agreed(group, call_of(Operation::ReduceScatter, tensor, static_cast<int>(reduce)));
  return detail::WorkAccess::make(internal_, std::move(agreed),
                                  begin_reduce_scatter(group, tensor, reduce));
}

std::vector<std::string> ProcessGroup::all_gather_bytes(std::string_view bytes) {
  AgreedCall(*internal_->group, {.operation = Operation::AllGatherBytes}).settle();
  return internal_->group->all_gather_bytes(bytes);
}

void ProcessGroup::barrier() {
  AgreedCall(*internal_->group, {.operation = Operation::Barrier}).settle();
  internal_->group->barrier();
}

std::shared_ptr<ProcessGroup> ProcessGroup::split(int color) {
  AgreedCall(*internal_->group, {.operation = Operation::Split}).settle();
  auto part = std::make_shared<Internal>();
  part->whole = internal_;
  part->local_rank = internal_->local_rank;
  part->local_size = internal_->local_size;
  part->device = internal_->device;
  part->name = fmt::format("{}{}{}.{}", internal_->name, internal_->name.empty() ? "" : "/",
                           ++internal_->num_splits, color);
  part->group = internal_->group->split(color, comm::constant_text("part " + part->name));
  return detail::GroupAccess::make(std::move(part));
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
  auto internal = std::make_shared<detail::GroupAccess::Internal>();
  internal->flight = telemetry::FlightWriter::attach();  // read by other processes
  if (environment.group > 0) internal->name = std::to_string(environment.group + 1);
  internal->local_rank = environment.local_rank;
  internal->local_size = environment.local_world;
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
  const TerminateHandler handler;
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
