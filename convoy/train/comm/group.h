// SPDX-License-Identifier: Apache-2.0
//
// The ranks of a job as one object. Driven by one thread. A failed collective throws CommError and
// leaves the group unusable: let the error end the rank.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/core/telemetry/ranks/flight_record_writer.h"
#include "convoy/train/comm/rank_environment.h"
#include "convoy/train/comm/reduction.h"
#include "convoy/train/comm/store_barrier.h"

namespace c10d {
class Backend;
}

namespace convoy::comm {

// A collective under way. Destroying it without wait() is allowed only after an error.
class Work {
 public:
  virtual ~Work() = default;
  // Blocks where the tensors lie on the CPU. On a device its current stream waits, and the host
  // goes on. Throws CommError.
  virtual void wait() = 0;
};

// Tensors are contiguous, of one dtype (fp32, bf16, int64) and shape on every rank. They lie on the
// CPU or on the group's device. A collective of device tensors runs after the work that is already
// in the device's current stream; work that is submitted after its wait() runs after the
// collective. When a collective fails on the device, its values are wrong, and every later call
// throws its CommError: so a figure that was read from the device is valid only once a later call
// has returned.
class Group {
 public:
  virtual ~Group() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Collective. Async: the caller neither reads nor writes `tensor` until wait(). Afterwards
  // `tensor` holds the reduction over ranks.
  virtual std::unique_ptr<Work> start_all_reduce(at::Tensor tensor, Reduction reduction) = 0;
  // Collective. Async: the caller touches neither tensor until wait(). `whole` is flat, as long as
  // size() times `own`, and is cut into equal pieces in the order of ranks. `own` becomes the
  // reduction over ranks of this rank's piece. Sums are taken in the order of ranks, sums of bf16
  // in fp32.
  virtual std::unique_ptr<Work> start_reduce_scatter(at::Tensor whole, at::Tensor own,
                                                     Reduction reduction) = 0;
  // Collective. Async: the caller touches neither tensor until wait(). `whole` becomes the `own`
  // tensors of all ranks, in the order of ranks. `own` may be this rank's piece of `whole` itself.
  virtual std::unique_ptr<Work> start_all_gather(at::Tensor own, at::Tensor whole) = 0;
  // Collective. Waits as Work::wait() does. On every rank `tensor` becomes the tensor of `root`.
  virtual void broadcast(at::Tensor tensor, int root) = 0;
  // Collective. Blocks. Returns the bytes of each rank, by rank; lengths may differ.
  virtual std::vector<std::string> all_gather_bytes(std::string_view bytes) = 0;
  // Collective. Blocks until every rank is here.
  virtual void barrier() = 0;
  // Collective. barrier() without the time limit of collectives, for waits while one rank reads or
  // writes files.
  virtual void wait_for_all() { barrier(); }
  // Blocks until every collective that was started on the device has run. Throws CommError. Call it
  // before a checkpoint keeps values that come from collectives.
  virtual void await_device() {}
  // Closes the connections so that peers fail at once instead of by timeout. Call when this rank
  // failed.
  virtual void abort() = 0;
  // Collective over this whole group. Blocks. Ranks that bring the same `color` form a new group,
  // in the same order. This group outlives the new one, and its abort() aborts it too. The new
  // group's wait_for_all() has the time limit of collectives. `name`: a constant text, for records.
  virtual std::unique_ptr<Group> split(int color, std::string_view name) = 0;
  // The c10d backend beneath, for CPU tensors; null: there is none.
  virtual c10::intrusive_ptr<c10d::Backend> c10d_backend();
  // Seconds that this rank, or its device, has waited in collectives so far. The rank that waits
  // least holds the others up.
  virtual double waited_seconds() const { return 0; }

  // start_all_reduce() with Reduction::Sum.
  std::unique_ptr<Work> start_all_reduce_sum(at::Tensor tensor);
  std::unique_ptr<Work> start_reduce_scatter_sum(at::Tensor whole, at::Tensor own);
  // Collective. Waits as Work::wait() does. `tensor` becomes the sum over ranks.
  void all_reduce_sum(at::Tensor tensor);
  // Collective. start_all_gather() and wait().
  void all_gather(at::Tensor own, at::Tensor whole);
  // Collective. Blocks. True on every rank when it is true on any.
  bool any(bool value);
};

// Collective. Blocks until all ranks have joined. `timeout` limits joining and every collective:
// ranks that start at different times call store_barrier->wait_for_all() first. World 1: no
// connection is made. With a `device` that is not the CPU, collectives of its tensors use NCCL.
// Ranks that are threads of one process use each other's memory. Joining and every collective are
// written to the barrier's flight record. Throws CommError, DeviceError.
std::unique_ptr<Group> join_group_at(std::shared_ptr<StoreBarrier> store_barrier,
                                     std::chrono::seconds timeout, at::Device device = at::kCPU);
// join_group_at() with a store barrier of its own, which must be reached within `timeout`.
std::unique_ptr<Group> join_group(const RankEnvironment& environment, std::chrono::seconds timeout,
                                  telemetry::FlightWriter* flight = nullptr,
                                  at::Device device = at::kCPU);

}  // namespace convoy::comm
