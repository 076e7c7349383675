// SPDX-License-Identifier: Apache-2.0
//
// Before a collective the ranks compare what they call. Backends take bytes as they come: they
// would add up numbers of other types, and wait for a root that does not send.
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

// A call of one rank, as all ranks must make it.
struct Call {
  Operation operation;
  int choice = 0;      // the root of a broadcast, the Reduce of a reduction
  int64_t dtype = -1;  // -1: no tensor
  int64_t num_dims = 0;
  std::array<int64_t, 8> shape = {};  // the first dimensions

  bool operator==(const Call&) const = default;
};

Call call_of(Operation operation, const at::Tensor& tensor, int choice = 0);

class AgreedCall {
 public:
  // Collective. Begins to compare. `group` outlives this.
  AgreedCall(comm::Group& group, const Call& own);
  // Blocks. Throws CommError with both calls when a rank calls something else. Call it once.
  void settle();

 private:
  std::optional<comm::Exchange<Call>> calls_;  // none in a group of one
};

}  // namespace convoy::detail
