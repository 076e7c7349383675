// SPDX-License-Identifier: Apache-2.0
//
// Before a collective the ranks compare their calls. A backend compares nothing: it would add
// numbers of different types, or wait for a root that sends nothing.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <optional>

#include "convoy/train/comm/exchange.h"

namespace convoy::detail {

enum class Operation {
  AllReduce,
  Broadcast,
  AllGather,
  ReduceScatter,
  AllGatherBytes,
  Barrier,
  Split
};

// A call by one rank. All ranks must make the same call.
struct Call {
  Operation operation;
  int choice = 0;      // the root of a broadcast, the Reduce of a reduction
  int64_t dtype = -1;  // -1: no tensor
  int64_t num_dims = 0;
  std::array<int64_t, 8> shape = {};  // first dimensions of the tensor

  bool operator==(const Call&) const = default;
};

Call call_of(Operation operation, const at::Tensor& tensor, int choice = 0);

class AgreedCall {
 public:
  // Collective. Starts the comparison. `group` must outlive this object.
  AgreedCall(comm::Group& group, const Call& own);
  // Blocks until the calls are compared. Throws CommError with both calls when another rank calls
  // something else. Call it once.
  void settle();

 private:
  std::optional<comm::Exchange<Call>> calls_;  // empty in a group of one
};

}  // namespace convoy::detail
