// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/parallel/sharded/gather_order.h"

namespace convoy::parallel {

void GatherOrder::note(size_t unit) {
  if (last_two_.second) follower_[last_two_] = unit;
  last_two_ = {last_two_.second, unit};
}

std::vector<size_t> GatherOrder::next(size_t count) const {
  std::vector<size_t> units;
  Two two = last_two_;
  while (units.size() < count) {
    const auto found = follower_.find(two);
    if (found == follower_.end()) break;
    units.push_back(found->second);
    two = {two.second, found->second};
  }
  return units;
}

}  // namespace convoy::parallel
