// SPDX-License-Identifier: Apache-2.0
#include "convoy/generate/scheduler/block_pool.h"

#include "convoy/core/base/error.h"

namespace convoy::scheduler {

BlockPool::BlockPool(int64_t num_blocks)
    : holders_(static_cast<size_t>(num_blocks), 0), links_(static_cast<size_t>(num_blocks) + 1) {
  links_[sentinel()] = {sentinel(), sentinel()};
  for (BlockId block = 0; block < sentinel(); ++block) link_after(links_[sentinel()].before, block);
}

void BlockPool::unlink(BlockId block) {
  const Link link = links_[block];
  links_[link.before].after = link.after;
  links_[link.after].before = link.before;
  --num_free_;
}

void BlockPool::link_after(BlockId before, BlockId block) {
  const BlockId after = links_[before].after;
  links_[block] = {before, after};
  links_[before].after = block;
  links_[after].before = block;
  ++num_free_;
}

int64_t BlockPool::num_holders(BlockId block) const {
  return holders_.at(static_cast<size_t>(block));
}

BlockId BlockPool::take() {
  CONVOY_CHECK(num_free_ > 0, StateError, "all {} KV blocks are taken", num_blocks());
  const BlockId block = links_[sentinel()].after;
  unlink(block);
  holders_[block] = 1;
  return block;
}

void BlockPool::hold(BlockId block) {
  if (holders_.at(static_cast<size_t>(block))++ == 0) unlink(block);
}

bool BlockPool::lose_holder(BlockId block) {
  CONVOY_INVARIANT(num_holders(block) > 0, "block {} is free and loses a holder", block);
  return --holders_[block] == 0;
}

void BlockPool::release(BlockId block) {
  if (lose_holder(block)) link_after(links_[sentinel()].before, block);
}

void BlockPool::discard(BlockId block) {
  if (lose_holder(block)) link_after(sentinel(), block);
}

}  // namespace convoy::scheduler
