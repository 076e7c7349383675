// SPDX-License-Identifier: Apache-2.0
//
// The collectives of a group over a c10d backend, for CPU tensors. Subclasses make or borrow the
// backend, wait for it, end it and split it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/train/comm/collective_scope.h"
#include "convoy/train/comm/group.h"

namespace c10d {
class Work;
}

namespace convoy::comm {

class BackendGroup : public Group {
 public:
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::unique_ptr<Work> start_all_reduce(at::Tensor tensor, Reduction reduction) override;
  std::unique_ptr<Work> start_reduce_scatter(at::Tensor whole, at::Tensor own,
                                             Reduction reduction) override;
  std::unique_ptr<Work> start_all_gather(at::Tensor own, at::Tensor whole) override;
  void broadcast(at::Tensor tensor, int root) override;
  std::vector<std::string> all_gather_bytes(std::string_view bytes) override;
  void barrier() override;
  double waited_seconds() const override { return collectives_.waited_seconds(); }

 protected:
  // `name`: a constant text, for records. `flight` outlives this.
  BackendGroup(telemetry::FlightWriter& flight, int rank, int size, std::string_view name)
      : rank_(rank), size_(size), collectives_(flight, rank, size, name) {}
  virtual c10d::Backend& backend() = 0;
  // Blocks until the collective is done. Throws what the collective threw.
  virtual void await(c10d::Work& work) = 0;
  GroupCollectives& collectives() { return collectives_; }

 private:
  class BackendWork;

  const int rank_;
  const int size_;
  GroupCollectives collectives_;
};

}  // namespace convoy::comm
