// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/parallel/sharded/gather_order.h"

namespace convoy::parallel {

void GatherOrder::note(size_t unit) {
  if (last_two_.second) follower_[last_two_] = unit;
  last_two_ = {last_two_.second, unit};
}

std::optional<size_t> GatherOrder::next() const {
  const auto found = follower_.find(last_two_);
  if (found == follower_.end()) return std::nullopt;
  return found->second;
}

}  // namespace convoy::parallel
