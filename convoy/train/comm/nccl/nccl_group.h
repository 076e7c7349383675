// SPDX-License-Identifier: Apache-2.0
//
// Ranks on GPUs: collectives of device tensors go through NCCL on a stream of their own, all others
// through a group of the hosts.
#pragma once

#include <c10/core/Stream.h>

#include "convoy/train/comm/collective_scope.h"
#include "convoy/train/comm/group.h"
#include "convoy/train/comm/nccl/nccl_library.h"

namespace convoy::comm {

// A collective of the device runs beside the work of the device's current stream. wait() watches it
// from the host, so that a lost peer ends the wait after `timeout`, and the flight record names the
// collective that this rank waits for, as with Gloo. Joining, and what NCCL does for a collective
// before the device has it, have the same limit. Sums are NCCL's: its order of summation and its
// rounding of bf16.
class NcclGroup : public Group {
 public:
  // `host` has the same ranks. `flight` outlives this, and so does `whole`, the group that this one
  // was split from. `name`: a constant text, for records. Collective. Blocks. Throws CommError.
  NcclGroup(std::unique_ptr<Group> host, telemetry::FlightWriter& flight, const NcclLibrary& nccl,
            at::Device device, std::chrono::milliseconds timeout, std::string_view name = "devices",
            NcclGroup* whole = nullptr);
  ~NcclGroup() override;
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  std::unique_ptr<Work> start_all_reduce_sum(at::Tensor tensor) override;
  std::unique_ptr<Work> start_reduce_scatter_sum(at::Tensor whole, at::Tensor own) override;
  std::unique_ptr<Work> start_all_gather(at::Tensor own, at::Tensor whole) override;
  void broadcast(at::Tensor tensor, int root) override;
  std::vector<std::string> all_gather_bytes(std::string_view bytes) override {
    return host_->all_gather_bytes(bytes);
  }
  void barrier() override { host_->barrier(); }
  void wait_for_all() override { host_->wait_for_all(); }
  void abort() override;
  std::unique_ptr<Group> split(int color, std::string_view name) override;
  double waited_seconds() const override {
    return host_->waited_seconds() + collectives_.waited_seconds();
  }

 private:
  class DeviceWork;

  // Throw std::runtime_error after abort(), so that nothing later hangs on the communicator.
  [[noreturn]] void fail(const std::string& reason);
  void check(int result);
  void require_usable() const;
  int state();  // of the communicator: kNcclInProgress while a call goes on
  // Until `is_done()`; fails after the timeout.
  template <class IsDone>
  void poll(IsDone is_done);
  // Blocks until a call that returned `result` has been carried out: the device has its work.
  void settle(int result);
  void join();
  // Runs `call(stream)`, a collective of `tensors`, on the group's stream after what the current
  // stream has so far.
  template <class Call>
  std::unique_ptr<DeviceWork> start(const CollectiveScope& scope, std::vector<at::Tensor> tensors,
                                    Call call);
  // Blocks until the collective has run.
  void watch(c10::Event& done);

  std::unique_ptr<Group> host_;
  telemetry::FlightWriter& flight_;
  GroupCollectives collectives_;
  const NcclLibrary nccl_;
  const at::Device device_;
  const std::chrono::milliseconds timeout_;
  const c10::Stream stream_;
  NcclCommunicator communicator_ = nullptr;
  NcclGroup* const whole_;
  std::vector<NcclGroup*> parts_;  // split from this one and alive
  int exceptions_at_start_;
};

}  // namespace convoy::comm
