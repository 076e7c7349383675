// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/rendezvous/membership.h"

#include "convoy/core/base/error.h"

namespace convoy::rendezvous {

std::vector<int> node_ranks(const std::vector<JoinedNode>& joined, int max_nodes) {
  constexpr size_t kFree = static_cast<size_t>(-1);
  CONVOY_INVARIANT(joined.size() <= static_cast<size_t>(max_nodes), "{} nodes in {} places",
                   joined.size(), max_nodes);
  std::vector<size_t> holder(static_cast<size_t>(max_nodes), kFree);
  std::vector<bool> seated(joined.size(), false);
  const auto take = [&](size_t seat, int place) {
    if (seated[seat] || place < 0 || place >= max_nodes) return;
    size_t& at = holder[static_cast<size_t>(place)];
    if (at != kFree) return;
    at = seat;
    seated[seat] = true;
  };
  for (size_t seat = 0; seat < joined.size(); ++seat) take(seat, joined[seat].asked_rank);
  for (size_t seat = 0; seat < joined.size(); ++seat) take(seat, joined[seat].previous_rank);
  int place = 0;
  const auto take_lowest = [&](size_t seat) {
    if (seated[seat]) return;
    while (holder[static_cast<size_t>(place)] != kFree) ++place;
    take(seat, place);
  };
  for (size_t seat = 0; seat < joined.size(); ++seat)
    if (joined[seat].hosts_coordinator) take_lowest(seat);
  for (size_t seat = 0; seat < joined.size(); ++seat) take_lowest(seat);

  std::vector<int> ranks(joined.size(), -1);
  int next = 0;
  for (const size_t seat : holder)
    if (seat != kFree) ranks[seat] = next++;
  return ranks;
}

std::vector<int> first_ranks(const std::vector<int>& ranks_per_node) {
  std::vector<int> first = {0};
  for (const int count : ranks_per_node) first.push_back(first.back() + count);
  return first;
}

}  // namespace convoy::rendezvous
