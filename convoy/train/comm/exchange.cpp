// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/comm/exchange.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace convoy::comm {

// Only one rank fills each slot, so a sum of bit patterns carries the figures unrounded.
WordExchange::WordExchange(Group& group, std::span<const int64_t> own)
    : slots_(at::zeros({group.size() * static_cast<int64_t>(own.size())}, at::kLong)) {
  std::copy(own.begin(), own.end(),
            slots_.mutable_data_ptr<int64_t>() + group.rank() * static_cast<int64_t>(own.size()));
  sum_ = group.start_all_reduce_sum(slots_);
}

std::vector<int64_t> WordExchange::wait() {
  sum_->wait();
  const int64_t* const words = slots_.const_data_ptr<int64_t>();
  return {words, words + slots_.numel()};
}

std::vector<int64_t> exchange_words(Group& group, std::span<const int64_t> own) {
  return WordExchange(group, own).wait();
}

}  // namespace convoy::comm
