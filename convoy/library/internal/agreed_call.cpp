// SPDX-License-Identifier: Apache-2.0
#include "convoy/library/internal/agreed_call.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "convoy/core/base/error.h"
#include "convoy/library/process_group.h"

namespace convoy::detail {
namespace {

constexpr std::array<const char*, 7> kOperationNames = {
    "all_reduce",       "broadcast", "all_gather", "reduce_scatter",
    "all_gather_bytes", "barrier",   "split"};

constexpr std::array<const char*, 4> kReduceNames = {"Sum", "Mean", "Max", "Min"};

std::string words_of(const Call& call) {
  std::string words = kOperationNames.at(static_cast<size_t>(call.operation));
  if (call.dtype < 0) return words;
  const auto num_dims = std::min(static_cast<size_t>(call.num_dims), call.shape.size());
  words += fmt::format(" of {} [{}]", c10::toString(static_cast<at::ScalarType>(call.dtype)),
                       fmt::join(call.shape.begin(), call.shape.begin() + num_dims, ", "));
  if (call.operation == Operation::Broadcast) words += fmt::format(" from rank {}", call.choice);
  const bool reduces =
      call.operation == Operation::AllReduce || call.operation == Operation::ReduceScatter;
  if (reduces && call.choice != static_cast<int>(Reduce::Sum))
    words += fmt::format(" by Reduce::{}", kReduceNames.at(static_cast<size_t>(call.choice)));
  return words;
}

}  // namespace

Call call_of(Operation operation, const at::Tensor& tensor, int choice) {
  Call call{.operation = operation,
            .choice = choice,
            .dtype = static_cast<int64_t>(tensor.scalar_type()),
            .num_dims = tensor.dim()};
  std::copy_n(tensor.sizes().begin(), std::min(call.shape.size(), tensor.sizes().size()),
              call.shape.begin());
  return call;
}

AgreedCall::AgreedCall(comm::Group& group, const Call& own) {
  if (group.size() > 1) calls_.emplace(group, own);
}

void AgreedCall::settle() {
  if (!calls_) return;
  const std::vector<Call> all = calls_->wait();
  for (size_t rank = 1; rank < all.size(); ++rank)
    if (!(all[rank] == all[0]))
      throw CommError(
          fmt::format("ranks call different collectives: rank 0 {}, rank {} {}", words_of(all[0]),
                      rank, words_of(all[rank])),
          {.hint = "all ranks must call the same function with tensors of one type and shape, from "
                   "one root or by one reduction"});
}

}  // namespace convoy::detail
