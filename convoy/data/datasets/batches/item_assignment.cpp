// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/batches/item_assignment.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

namespace convoy::data {
namespace {

struct Slot {
  int64_t tokens = 0;
  size_t number = 0;  // breaks ties between equal slots
  std::vector<size_t> items = {};
};

// Order of a priority queue: the slot with the fewest tokens first, then with the fewest items.
bool comes_later(const Slot* left, const Slot* right) {
  return std::tuple(left->tokens, left->items.size(), left->number) >
         std::tuple(right->tokens, right->items.size(), right->number);
}

}  // namespace

std::vector<std::vector<size_t>> assign_in_turn(size_t num_items, size_t slots) {
  std::vector<std::vector<size_t>> dealt(slots);
  for (size_t item = 0; item < num_items; ++item) dealt[item % slots].push_back(item);
  return dealt;
}

std::vector<std::vector<size_t>> assign_by_tokens(const std::vector<int64_t>& item_tokens,
                                                  size_t slots) {
  std::vector<size_t> largest_first(item_tokens.size());
  std::iota(largest_first.begin(), largest_first.end(), size_t{0});
  std::stable_sort(largest_first.begin(), largest_first.end(), [&](size_t left, size_t right) {
    return item_tokens[left] > item_tokens[right];
  });
  std::vector<Slot> filled(slots);
  std::priority_queue open_slots(comes_later, std::vector<Slot*>());
  for (size_t number = 0; number < slots; ++number) {
    filled[number].number = number;
    open_slots.push(&filled[number]);
  }
  const size_t most_items = (item_tokens.size() + slots - 1) / slots;
  for (const size_t item : largest_first) {
    Slot* const slot = open_slots.top();
    open_slots.pop();
    slot->tokens += item_tokens[item];
    slot->items.push_back(item);
    if (slot->items.size() < most_items) open_slots.push(slot);
  }
  std::stable_sort(filled.begin(), filled.end(),
                   [](const Slot& left, const Slot& right) { return left.tokens > right.tokens; });
  // The first half has the most tokens. The second half is reversed, so that each of its slots
  // balances one of the first half.
  const size_t half = slots / 2;
  std::reverse(filled.begin() + static_cast<std::ptrdiff_t>(half), filled.end());
  std::vector<std::vector<size_t>> dealt;
  for (Slot& slot : filled) {
    std::sort(slot.items.begin(), slot.items.end());
    dealt.push_back(std::move(slot.items));
  }
  return dealt;
}

}  // namespace convoy::data
