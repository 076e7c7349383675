// SPDX-License-Identifier: Apache-2.0
#include "convoy/generate/scheduler/layer_blocks.h"

#include <algorithm>

namespace convoy::scheduler {
namespace {

int64_t blocks_of(int64_t tokens, int64_t block_tokens) {
  return (tokens + block_tokens - 1) / block_tokens;
}

}  // namespace

LayerBlocks::LayerBlocks(const LayerGroup& group, int64_t block_tokens)
    : window_tokens_(group.window_tokens),
      block_tokens_(block_tokens),
      pool_(group.num_blocks),
      index_(group.num_blocks) {}

int64_t LayerBlocks::most_held(int64_t tokens, int64_t step_tokens) const {
  const int64_t all = blocks_of(tokens, block_tokens_);
  if (window_tokens_ == 0) return all;
  // The first query of a step also reads the window - 1 keys before it. Neither end of this range
  // of keys needs to be the end of a block, so it may touch one block more.
  return std::min(all, blocks_of(window_tokens_ - 1 + step_tokens, block_tokens_) + 1);
}

int64_t LayerBlocks::first_place(int64_t position) const {
  if (window_tokens_ == 0) return 0;
  return std::max<int64_t>(position - window_tokens_ + 1, 0) / block_tokens_;
}

int64_t LayerBlocks::most_shared(std::span<const PrefixKey> keys) const {
  if (window_tokens_ > 0) return static_cast<int64_t>(keys.size());
  const auto missing = std::find_if(
      keys.begin(), keys.end(), [&](const PrefixKey& key) { return index_.find(key) == kNoBlock; });
  return missing - keys.begin();
}

bool LayerBlocks::has_prefix(std::span<const PrefixKey> keys) const {
  const auto needed = keys.subspan(first_place(keys.size() * block_tokens_));
  return std::all_of(needed.begin(), needed.end(),
                     [&](const PrefixKey& key) { return index_.find(key) != kNoBlock; });
}

int64_t LayerBlocks::num_unheld(std::span<const PrefixKey> keys) const {
  const auto needed = keys.subspan(first_place(keys.size() * block_tokens_));
  return std::count_if(needed.begin(), needed.end(), [&](const PrefixKey& key) {
    return pool_.num_holders(index_.find(key)) == 0;
  });
}

BlockTable LayerBlocks::hold_prefix(std::span<const PrefixKey> keys) {
  BlockTable table(keys.size(), kNoBlock);
  for (size_t place = first_place(keys.size() * block_tokens_); place < keys.size(); ++place) {
    table[place] = index_.find(keys[place]);
    pool_.hold(table[place]);
  }
  return table;
}

int64_t LayerBlocks::missing(const BlockTable& table, int64_t end) const {
  return std::max<int64_t>(blocks_of(end, block_tokens_) - static_cast<int64_t>(table.size()), 0);
}

void LayerBlocks::extend(BlockTable& table, int64_t end) {
  for (int64_t left = missing(table, end); left > 0; --left) {
    table.push_back(pool_.take());
    index_.forget(table.back());
  }
}

void LayerBlocks::publish(const PrefixKey& key, BlockId block) {
  if (index_.add(key, block)) unsettled_.push_back(block);
}

void LayerBlocks::retract_published() {
  for (const BlockId block : unsettled_) index_.forget(block);
  unsettled_.clear();
}

void LayerBlocks::drop_below_window(BlockTable& table, int64_t position) {
  const auto first = std::min(first_place(position), static_cast<int64_t>(table.size()));
  for (int64_t place = first; place-- > 0 && table[place] != kNoBlock;) {
    let_go(table[place]);
    table[place] = kNoBlock;
  }
}

// A block that is in no prefix is discarded, so that it is taken again before the blocks of
// prefixes.
void LayerBlocks::let_go(BlockId block) {
  if (index_.holds(block))
    pool_.release(block);
  else
    pool_.discard(block);
}

void LayerBlocks::release(BlockTable& table) {
  for (auto block = table.rbegin(); block != table.rend(); ++block)
    if (*block != kNoBlock) let_go(*block);
  table.clear();
}

}  // namespace convoy::scheduler
