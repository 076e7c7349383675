// SPDX-License-Identifier: Apache-2.0
//
// Ranks on GPUs: collectives of device tensors go through NCCL on a stream of their own, all others
// through a group of the hosts.
#pragma once

#include <c10/core/Stream.h>

#include "convoy/train/comm/collective_scope.h"
#include "convoy/train/comm/group.h"
#include "convoy/train/comm/nccl/collective_watch.h"
#include "convoy/train/comm/nccl/communicator.h"

namespace convoy::comm {

// A collective of the device runs beside the work of the device's current stream. One thread
// watches the collectives of a group and its parts. It ends a collective whose peer is lost when
// `timeout` has passed since the device began it, and lets the flight record name the collective
// that this rank's device waits for. The same limit holds for joining, and for NCCL's work on a
// collective before the device has it. Sums have NCCL's order of summation and its rounding of
// bf16.
class NcclGroup : public Group {
 public:
  // `host` has the same ranks. `flight` outlives this. Collective. Blocks. Throws CommError.
  NcclGroup(std::unique_ptr<Group> host, telemetry::FlightWriter& flight, const NcclLibrary& nccl,
            at::Device device, std::chrono::milliseconds timeout);
  ~NcclGroup() override;
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  std::unique_ptr<Work> start_all_reduce(at::Tensor tensor, Reduction reduction) override;
  std::unique_ptr<Work> start_reduce_scatter(at::Tensor whole, at::Tensor own,
                                             Reduction reduction) override;
  std::unique_ptr<Work> start_all_gather(at::Tensor own, at::Tensor whole) override;
  void broadcast(at::Tensor tensor, int root) override;
  std::vector<std::string> all_gather_bytes(std::string_view bytes) override;
  void barrier() override;
  void wait_for_all() override;
  void await_device() override { watch_->await_all(); }
  void abort() override;
  std::unique_ptr<Group> split(int color, std::string_view name) override;
  c10::intrusive_ptr<c10d::Backend> c10d_backend() override;
  double waited_seconds() const override {
    return host_->waited_seconds() + collectives_.waited_seconds();
  }

 private:
  class DeviceWork;

  // A part of `whole`, which outlives the part. `name`: a constant text, for records.
  NcclGroup(std::unique_ptr<Group> host, const NcclGroup& whole, std::string_view name);
  void join();
  // Runs `call(handle, stream)`, a collective of `tensors`, on the group's stream after what the
  // current stream has so far.
  template <class Call>
  std::unique_ptr<Work> start(const CollectiveScope& scope, std::vector<at::Tensor> tensors,
                              Call call);
  // Runs `call`, a collective of the hosts, and blocks until it is done. An error of the device
  // ends it too.
  template <class Call>
  auto on_host(Call call);

  std::unique_ptr<Group> host_;
  telemetry::FlightWriter& flight_;
  GroupCollectives collectives_;
  const NcclLibrary nccl_;
  const at::Device device_;
  const std::chrono::milliseconds timeout_;
  const c10::Stream stream_;
  int exceptions_at_start_;
  std::shared_ptr<CollectiveWatch> watch_;  // watches the whole group
  Communicator communicator_;
};

}  // namespace convoy::comm
