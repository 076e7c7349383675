// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/comm/nccl/nccl_group.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "convoy/core/base/error.h"

namespace convoy::comm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSum = 0;    // ncclSum
constexpr int kBytes = 1;  // ncclUint8: of any type, where nothing is added up

// ncclDataType_t.
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

// Before others where the GPU can choose: what waits for a collective is the end of the step.
c10::Stream own_stream(at::Device device) {
  constexpr bool kHighPriority = true;
  return c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device, kHighPriority);
}

}  // namespace

class NcclGroup::DeviceWork : public Work {
 public:
  DeviceWork(NcclGroup& group, const CollectiveScope& scope, std::vector<at::Tensor> tensors)
      : group_(group), scope_(scope), tensors_(std::move(tensors)), done_(group.device_.type()) {}

  c10::Event& done() { return done_; }
  void wait() override {
    scope_.finish([this] { group_.watch(done_); });
  }

 private:
  NcclGroup& group_;
  CollectiveScope scope_;
  // Their memory is not given to others while the collective runs.
  std::vector<at::Tensor> tensors_;
  c10::Event done_;
};

NcclGroup::NcclGroup(std::unique_ptr<Group> host, telemetry::FlightWriter& flight,
                     const NcclLibrary& nccl, at::Device device, std::chrono::milliseconds timeout,
                     std::string_view name, NcclGroup* whole)
    : host_(std::move(host)),
      flight_(flight),
      collectives_(flight, host_->rank(), host_->size(), name),
      nccl_(nccl),
      device_(device),
      timeout_(timeout),
      stream_(own_stream(device)),
      whole_(whole),
      exceptions_at_start_(std::uncaught_exceptions()) {
  try {
    collectives_.enter("join").finish([this] { join(); });
  } catch (...) {
    abort();
    throw;
  }
  if (whole_ != nullptr) whole_->parts_.push_back(this);
}

NcclGroup::~NcclGroup() {
  if (std::uncaught_exceptions() > exceptions_at_start_) abort();
  if (whole_ != nullptr) std::erase(whole_->parts_, this);
  if (communicator_ != nullptr) nccl_.destroy(communicator_);
}

void NcclGroup::fail(const std::string& reason) {
  abort();
  throw std::runtime_error(reason);
}

void NcclGroup::check(int result) {
  constexpr int kSuccess = 0;
  if (result == kSuccess || result == kNcclInProgress) return;
  fail(fmt::format("NCCL: {}\n{}", nccl_.error_text(result), nccl_.last_error(communicator_)));
}

void NcclGroup::require_usable() const {
  if (communicator_ == nullptr) throw std::runtime_error("an earlier error has ended the group");
}

int NcclGroup::state() {
  int found = 0;
  check(nccl_.async_error(communicator_, &found));
  check(found);
  return found;
}

template <class IsDone>
void NcclGroup::poll(IsDone is_done) {
  // Short collectives are over within microseconds; of long ones a tenth of a millisecond is
  // little.
  constexpr std::chrono::microseconds kFirstPause{1};
  constexpr std::chrono::microseconds kLongestPause{100};
  const Clock::time_point end = Clock::now() + timeout_;
  for (std::chrono::microseconds pause = kFirstPause; !is_done();
       pause = std::min(2 * pause, kLongestPause)) {
    if (Clock::now() > end)
      fail(fmt::format("timed out after {} ms",
                       std::chrono::duration_cast<std::chrono::milliseconds>(timeout_).count()));
    std::this_thread::sleep_for(pause);
  }
}

void NcclGroup::settle(int result) {
  check(result);
  if (result == kNcclInProgress) poll([this] { return state() != kNcclInProgress; });
}

void NcclGroup::join() {
  NcclId id{};
  if (rank() == 0) check(nccl_.get_unique_id(&id));
  const std::string of_rank_zero = host_->all_gather_bytes({id.bytes, sizeof(id.bytes)}).front();
  std::memcpy(id.bytes, of_rank_zero.data(), sizeof(id.bytes));
  NcclConfig config;
  settle(nccl_.init_rank(&communicator_, size(), id, rank(), &config));
}

template <class Call>
std::unique_ptr<NcclGroup::DeviceWork> NcclGroup::start(const CollectiveScope& scope,
                                                        std::vector<at::Tensor> tensors,
                                                        Call call) {
  return scope.run([&] {
    for (at::Tensor& tensor : tensors) {
      CONVOY_INVARIANT(tensor.device() == device_ && tensor.is_contiguous(),
                       "a tensor of {} in a group of {}", tensor.device().str(), device_.str());
      tensor = tensor.detach();
    }
    c10::Event ready(device_.type());
    ready.record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
    ready.block(stream_);
    auto work = std::make_unique<DeviceWork>(*this, scope, std::move(tensors));
    require_usable();
    settle(call(stream_.native_handle()));
    work->done().record(stream_);
    if (scope.is_traced()) {  // by the clock of the device: when it gets there
      const c10::impl::VirtualGuardImpl guard(device_.type());
      const c10::Stream current = guard.exchangeStream(stream_);
      scope.arrived();
      guard.exchangeStream(current);
    }
    return work;
  });
}

void NcclGroup::watch(c10::Event& done) {
  require_usable();  // an aborted collective looks done
  poll([&] {
    if (done.query()) return true;
    state();
    return false;
  });
}

std::unique_ptr<Work> NcclGroup::start_all_reduce_sum(at::Tensor tensor) {
  if (tensor.is_cpu()) return host_->start_all_reduce_sum(std::move(tensor));
  return start(collectives_.enter("all_reduce", tensor), {tensor}, [&](void* stream) {
    return nccl_.all_reduce(tensor.data_ptr(), tensor.data_ptr(), count_of(tensor),
                            nccl_dtype(tensor.scalar_type()), kSum, communicator_, stream);
  });
}

std::unique_ptr<Work> NcclGroup::start_reduce_scatter_sum(at::Tensor whole, at::Tensor own) {
  if (whole.is_cpu()) return host_->start_reduce_scatter_sum(std::move(whole), std::move(own));
  CONVOY_INVARIANT(whole.numel() == size() * own.numel(), "{} numbers for {} ranks with {} each",
                   whole.numel(), size(), own.numel());
  return start(collectives_.enter("reduce_scatter", whole), {whole, own}, [&](void* stream) {
    return nccl_.reduce_scatter(whole.data_ptr(), own.data_ptr(), count_of(own),
                                nccl_dtype(own.scalar_type()), kSum, communicator_, stream);
  });
}

std::unique_ptr<Work> NcclGroup::start_all_gather(at::Tensor own, at::Tensor whole) {
  if (own.is_cpu()) return host_->start_all_gather(std::move(own), std::move(whole));
  CONVOY_INVARIANT(whole.numel() == size() * own.numel(), "{} numbers for {} ranks with {} each",
                   whole.numel(), size(), own.numel());
  return start(collectives_.enter("all_gather", own), {own, whole}, [&](void* stream) {
    return nccl_.all_gather(own.data_ptr(), whole.data_ptr(), own.nbytes(), kBytes, communicator_,
                            stream);
  });
}

void NcclGroup::broadcast(at::Tensor tensor, int root) {
  if (tensor.is_cpu()) return host_->broadcast(std::move(tensor), root);
  start(collectives_.enter("broadcast", tensor), {tensor}, [&](void* stream) {
    return nccl_.broadcast(tensor.data_ptr(), tensor.data_ptr(), tensor.nbytes(), kBytes, root,
                           communicator_, stream);
  })->wait();
}

std::unique_ptr<Group> NcclGroup::split(int color, std::string_view name) {
  std::unique_ptr<Group> host = host_->split(color, name);
  if (host->size() == 1) return host;
  return std::make_unique<NcclGroup>(std::move(host), flight_, nccl_, device_, timeout_, name,
                                     this);
}

// Also ends kernels of the device that wait for a peer.
void NcclGroup::abort() {
  host_->abort();
  if (communicator_ != nullptr) nccl_.abort(communicator_);
  communicator_ = nullptr;
  for (NcclGroup* part : parts_) part->abort();
}

}  // namespace convoy::comm
