// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/comm/nccl/nccl_group.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <cstring>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "convoy/core/base/error.h"

namespace convoy::comm {
namespace {

constexpr int kBytes = 1;  // ncclUint8: for any type, where nothing is added up

// The ncclRedOp_t of a reduction.
int nccl_operation(Reduction reduction) {
  return reduction == Reduction::Sum ? 0 : reduction == Reduction::Max ? 2 : 3;
}

// The ncclDataType_t of a type.
int nccl_dtype(at::ScalarType dtype) {
  switch (dtype) {
    case at::kChar:
      return 0;
    case at::kByte:
      return kBytes;
    case at::kInt:
      return 2;
    case at::kLong:
      return 4;
    case at::kHalf:
      return 6;
    case at::kFloat:
      return 7;
    case at::kDouble:
      return 8;
    case at::kBFloat16:
      return 9;
    default:
      throw StateError(fmt::format("no sum over ranks of tensors of {}", c10::toString(dtype)));
  }
}

size_t count_of(const at::Tensor& tensor) { return static_cast<size_t>(tensor.numel()); }

c10::Stream current_stream(at::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

// A stream of high priority, because the end of a step waits for collectives.
c10::Stream own_stream(at::Device device) {
  constexpr bool kHighPriority = true;
  return c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device, kHighPriority);
}

}  // namespace

class NcclGroup::DeviceWork : public Work {
 public:
  DeviceWork(NcclGroup& group, std::vector<at::Tensor> tensors,
             std::shared_ptr<WatchedCollective> collective)
      : group_(group), tensors_(std::move(tensors)), collective_(std::move(collective)) {}

  void wait() override {
    group_.watch_->check();
    collective_->scope().let_device_wait(
        [this] { collective_->block(current_stream(group_.device_)); });
    tensors_.clear();
  }

 private:
  NcclGroup& group_;
  // The work holds the tensors so that LibTorch does not reuse their memory before the current
  // stream waits for the collective.
  std::vector<at::Tensor> tensors_;
  std::shared_ptr<WatchedCollective> collective_;
};

NcclGroup::NcclGroup(std::unique_ptr<Group> host, telemetry::FlightWriter& flight,
                     const NcclLibrary& nccl, at::Device device, std::chrono::milliseconds timeout)
    : host_(std::move(host)),
      flight_(flight),
      collectives_(flight, host_->rank(), host_->size(), "devices"),
      nccl_(nccl),
      device_(device),
      timeout_(timeout),
      stream_(own_stream(device)),
      exceptions_at_start_(std::uncaught_exceptions()),
      watch_(std::make_shared<CollectiveWatch>(device, timeout, *host_)),
      communicator_(nccl, timeout) {
  join();
}

NcclGroup::NcclGroup(std::unique_ptr<Group> host, const NcclGroup& whole, std::string_view name)
    : host_(std::move(host)),
      flight_(whole.flight_),
      collectives_(flight_, host_->rank(), host_->size(), name),
      nccl_(whole.nccl_),
      device_(whole.device_),
      timeout_(whole.timeout_),
      stream_(own_stream(device_)),
      exceptions_at_start_(std::uncaught_exceptions()),
      watch_(whole.watch_),
      communicator_(nccl_, timeout_) {
  join();
}

NcclGroup::~NcclGroup() {
  if (std::uncaught_exceptions() > exceptions_at_start_) abort();
  watch_->remove(communicator_);
}

void NcclGroup::join() {
  watch_->add(communicator_);
  try {
    collectives_.enter("join").finish([this] {
      NcclId id = rank() == 0 ? communicator_.new_id() : NcclId{};
      const std::string of_rank_zero =
          host_->all_gather_bytes({id.bytes, sizeof(id.bytes)}).front();
      std::memcpy(id.bytes, of_rank_zero.data(), sizeof(id.bytes));
      communicator_.join(id, size(), rank());
    });
  } catch (...) {
    watch_->fail(std::current_exception());
    watch_->remove(communicator_);
    throw;
  }
}

template <class Call>
std::unique_ptr<Work> NcclGroup::start(const CollectiveScope& scope,
                                       std::vector<at::Tensor> tensors, Call call) {
  for (at::Tensor& tensor : tensors) {
    CONVOY_INVARIANT(tensor.device() == device_ && tensor.is_contiguous(),
                     "a tensor of {} in a group of {}", tensor.device().str(), device_.str());
    tensor = tensor.detach();
  }
  const auto collective = std::make_shared<WatchedCollective>(scope, watch_->events());
  try {
    scope.run([&] {
      collective->ready().record(current_stream(device_));
      collective->ready().block(stream_);
      communicator_.run(
          [&](NcclCommunicator handle) { return call(handle, stream_.native_handle()); });
      collective->done().record(stream_);
      // The trace gets the time, by the device's clock, at which the device arrives here.
      if (scope.is_traced()) {
        const c10::impl::VirtualGuardImpl guard(device_.type());
        const c10::Stream current = guard.exchangeStream(stream_);
        scope.arrived();
        guard.exchangeStream(current);
      }
    });
  } catch (const CommError&) {
    watch_->fail(std::current_exception());
    watch_->check();  // throws the first error, which may be an earlier one
  }
  watch_->add(communicator_, collective);
  return std::make_unique<DeviceWork>(*this, std::move(tensors), collective);
}

template <class Call>
auto NcclGroup::on_host(Call call) {
  watch_->check();
  try {
    return call();
  } catch (const CommError&) {
    watch_->check();
    throw;
  }
}

std::vector<std::string> NcclGroup::all_gather_bytes(std::string_view bytes) {
  return on_host([&] { return host_->all_gather_bytes(bytes); });
}

void NcclGroup::barrier() {
  on_host([this] { host_->barrier(); });
}

c10::intrusive_ptr<c10d::Backend> NcclGroup::c10d_backend() { return host_->c10d_backend(); }

void NcclGroup::wait_for_all() {
  on_host([this] { host_->wait_for_all(); });
}

std::unique_ptr<Work> NcclGroup::start_all_reduce(at::Tensor tensor, Reduction reduction) {
  if (tensor.is_cpu()) return host_->start_all_reduce(std::move(tensor), reduction);
  if (tensor.is_complex()) tensor = at::view_as_real(tensor.detach());
  return start(collectives_.enter("all_reduce", tensor), {tensor},
               [&](NcclCommunicator handle, void* stream) {
                 return nccl_.all_reduce(tensor.data_ptr(), tensor.data_ptr(), count_of(tensor),
                                         nccl_dtype(tensor.scalar_type()),
                                         nccl_operation(reduction), handle, stream);
               });
}

std::unique_ptr<Work> NcclGroup::start_reduce_scatter(at::Tensor whole, at::Tensor own,
                                                      Reduction reduction) {
  if (whole.is_cpu())
    return host_->start_reduce_scatter(std::move(whole), std::move(own), reduction);
  if (whole.is_complex()) {
    whole = at::view_as_real(whole.detach());
    own = at::view_as_real(own.detach());
  }
  CONVOY_INVARIANT(whole.numel() == size() * own.numel(), "{} numbers for {} ranks with {} each",
                   whole.numel(), size(), own.numel());
  return start(collectives_.enter("reduce_scatter", whole), {whole, own},
               [&](NcclCommunicator handle, void* stream) {
                 return nccl_.reduce_scatter(whole.data_ptr(), own.data_ptr(), count_of(own),
                                             nccl_dtype(own.scalar_type()),
                                             nccl_operation(reduction), handle, stream);
               });
}

std::unique_ptr<Work> NcclGroup::start_all_gather(at::Tensor own, at::Tensor whole) {
  if (own.is_cpu()) return host_->start_all_gather(std::move(own), std::move(whole));
  CONVOY_INVARIANT(whole.numel() == size() * own.numel(), "{} numbers for {} ranks with {} each",
                   whole.numel(), size(), own.numel());
  return start(collectives_.enter("all_gather", own), {own, whole},
               [&](NcclCommunicator handle, void* stream) {
                 return nccl_.all_gather(own.data_ptr(), whole.data_ptr(), own.nbytes(), kBytes,
                                         handle, stream);
               });
}

void NcclGroup::broadcast(at::Tensor tensor, int root) {
  if (tensor.is_cpu()) return host_->broadcast(std::move(tensor), root);
  start(collectives_.enter("broadcast", tensor), {tensor},
        [&](NcclCommunicator handle, void* stream) {
          return nccl_.broadcast(tensor.data_ptr(), tensor.data_ptr(), tensor.nbytes(), kBytes,
                                 root, handle, stream);
        })
      ->wait();
}

std::unique_ptr<Group> NcclGroup::split(int color, std::string_view name) {
  std::unique_ptr<Group> host = on_host([&] { return host_->split(color, name); });
  if (host->size() == 1) return host;
  return std::unique_ptr<Group>(new NcclGroup(std::move(host), *this, name));
}

// abort() also ends kernels of the device that wait for a peer.
void NcclGroup::abort() {
  watch_->fail(std::make_exception_ptr(
      CommError("an earlier error has ended the group of devices",
                {.hint = "see the first error of a rank", .rank = rank()})));
}

}  // namespace convoy::comm
