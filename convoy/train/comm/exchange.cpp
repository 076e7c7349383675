// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/comm/exchange.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace convoy::comm {

// Only one rank fills each slot, so a sum of bit patterns carries the figures unrounded.
std::vector<int64_t> exchange_words(Group& group, std::span<const int64_t> own) {
  const auto count = static_cast<int64_t>(own.size());
  at::Tensor slots = at::zeros({group.size() * count}, at::kLong);
  int64_t* const slot = slots.mutable_data_ptr<int64_t>();
  std::copy(own.begin(), own.end(), slot + group.rank() * count);
  group.all_reduce_sum(slots);
  return {slot, slot + slots.numel()};
}

}  // namespace convoy::comm
