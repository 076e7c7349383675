// SPDX-License-Identifier: Apache-2.0
#include "convoy/comm/nccl/nccl_group.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cstring>
#include <stdexcept>
#include <thread>

#include "convoy/base/error.h"

namespace convoy::comm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSum = 0;  // ncclSum

// ncclDataType_t.
int nccl_dtype(at::ScalarType dtype) {
  switch (dtype) {
    case at::kByte:
      return 1;
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
      throw StateError(fmt::format("no collective for tensors of {}", c10::toString(dtype)));
  }
}

// Before others where the GPU can choose: what waits for a collective is the end of the step.
c10::Stream own_stream(at::Device device) {
  constexpr bool kHighPriority = true;
  return c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device, kHighPriority);
}

}  // namespace

class NcclGroup::DeviceWork : public Work {
 public:
  DeviceWork(NcclGroup& group, const Passage& passage, at::Tensor tensor)
      : group_(group),
        passage_(passage),
        tensor_(std::move(tensor)),
        done_(tensor_.device().type()) {}

  c10::Event& done() { return done_; }
  void wait() override {
    passage_.finish([this] { group_.watch(done_); });
  }

 private:
  NcclGroup& group_;
  Passage passage_;
  at::Tensor tensor_;  // its memory is not given to others while the collective runs
  c10::Event done_;
};

NcclGroup::NcclGroup(std::unique_ptr<Group> host, telemetry::FlightWriter& flight,
                     const NcclLibrary& nccl, at::Device device, std::chrono::milliseconds timeout)
    : host_(std::move(host)),
      passages_(flight, host_->rank(), host_->size(), "devices"),
      nccl_(nccl),
      device_(device),
      timeout_(timeout),
      stream_(own_stream(device)),
      exceptions_at_start_(std::uncaught_exceptions()) {
  passages_.enter("join").finish([this] { join(); });
}

NcclGroup::~NcclGroup() {
  if (std::uncaught_exceptions() > exceptions_at_start_) abort();
  if (communicator_ != nullptr) nccl_.destroy(communicator_);
}

void NcclGroup::check(int result) const {
  if (result != 0) throw std::runtime_error(fmt::format("NCCL: {}", nccl_.error_text(result)));
}

void NcclGroup::join() {
  NcclId id{};
  if (rank() == 0) check(nccl_.get_unique_id(&id));
  const std::string of_rank_zero = host_->all_gather_bytes({id.bytes, sizeof(id.bytes)}).front();
  std::memcpy(id.bytes, of_rank_zero.data(), sizeof(id.bytes));
  check(nccl_.init_rank(&communicator_, size(), id, rank()));
}

template <class Call>
std::unique_ptr<NcclGroup::DeviceWork> NcclGroup::start(const Passage& passage,
                                                        const at::Tensor& tensor, Call call) {
  return passage.run([&] {
    CONVOY_INVARIANT(tensor.device() == device_, "a tensor of {} in a group of {}",
                     tensor.device().str(), device_.str());
    c10::Event ready(device_.type());
    ready.record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
    ready.block(stream_);
    auto work = std::make_unique<DeviceWork>(*this, passage, tensor.detach());
    check(call(tensor.data_ptr(), static_cast<size_t>(tensor.numel()),
               nccl_dtype(tensor.scalar_type()), stream_.native_handle()));
    work->done().record(stream_);
    return work;
  });
}

void NcclGroup::watch(c10::Event& done) {
  // Short collectives are over within microseconds; of long ones a tenth of a millisecond is
  // little.
  constexpr std::chrono::microseconds kFirstPause{1};
  constexpr std::chrono::microseconds kLongestPause{100};
  const Clock::time_point end = Clock::now() + timeout_;
  for (std::chrono::microseconds pause = kFirstPause; !done.query();
       pause = std::min(2 * pause, kLongestPause)) {
    int state = 0;
    check(nccl_.async_error(communicator_, &state));
    check(state);
    if (Clock::now() > end) {
      abort();
      throw std::runtime_error(
          fmt::format("timed out after {} ms",
                      std::chrono::duration_cast<std::chrono::milliseconds>(timeout_).count()));
    }
    std::this_thread::sleep_for(pause);
  }
}

std::unique_ptr<Work> NcclGroup::start_all_reduce_sum(at::Tensor tensor) {
  if (tensor.is_cpu()) return host_->start_all_reduce_sum(std::move(tensor));
  return start(passages_.enter("all_reduce", tensor), tensor,
               [this](void* values, size_t count, int dtype, void* stream) {
                 return nccl_.all_reduce(values, values, count, dtype, kSum, communicator_, stream);
               });
}

void NcclGroup::broadcast(at::Tensor tensor, int root) {
  if (tensor.is_cpu()) return host_->broadcast(std::move(tensor), root);
  start(passages_.enter("broadcast", tensor), tensor,
        [&](void* values, size_t count, int dtype, void* stream) {
          return nccl_.broadcast(values, values, count, dtype, root, communicator_, stream);
        })
      ->wait();
}

// Also ends kernels of the device that wait for a peer.
void NcclGroup::abort() {
  host_->abort();
  if (communicator_ != nullptr) nccl_.abort(communicator_);
  communicator_ = nullptr;
}

}  // namespace convoy::comm
